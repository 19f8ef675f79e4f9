"""The functions f: expression language, safe parser, gallery."""
