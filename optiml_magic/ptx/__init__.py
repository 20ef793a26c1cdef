"""PTX as text that is read: parsed, cut into blocks, and what each instruction reads and writes.

The flow, in file names: parser (sources) -> nouns -> cfg (traits) -> loops. Nothing here runs PTX.
"""
