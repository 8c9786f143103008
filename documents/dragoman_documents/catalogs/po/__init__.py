"""PO and POT files of gettext."""
