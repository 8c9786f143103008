fn main() {
    println!("on");
}
