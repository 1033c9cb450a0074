"""The commands of ``oraudit``, a file for each."""
