"""Users' own benchmark files, of every usual tool, as one record in base units."""
