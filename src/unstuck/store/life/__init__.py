"""LIFE. What moves a job: submit, claim, beat, settle, what people ask, what time does."""
