"""oralib"""
