project = "Lamp"
extensions = ["myst_parser"]
myst_enable_extensions = [
    "amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist",
    "html_admonition", "html_image", "smartquotes", "strikethrough",
    "substitution", "tasklist",
]
myst_heading_anchors = 3
myst_substitutions = {"lamp": "the lamp"}
suppress_warnings = ["myst.xref_missing", "myst.strikethrough"]
html_theme = "basic"
html_copy_source = False
html_use_index = False
