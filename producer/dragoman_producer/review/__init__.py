"""The review of translations: pages to read and edit them, and the edits that come back."""
