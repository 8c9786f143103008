"""The ids of headings: made as each renderer makes them, kept in translations, checked in links."""
