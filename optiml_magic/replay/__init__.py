"""Searches of the past from their journals: as they were, or as another policy would have gone."""
