"""The cases on which claims are tried: small channels, counts, games, and worst cases."""
