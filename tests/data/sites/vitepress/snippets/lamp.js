const a = 1
// #region on
const on = true
// #endregion on
export { a, on }
