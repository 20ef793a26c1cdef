"""The page of ``%optiml help``; light, so that ``%optiml?`` has it before the rest is loaded."""

HELP = """\
%%optiml optimize   search for a faster kernel: verified, measured, explained
%%optiml synthesize a kernel from a reference, or words; then the same search
%%optiml check      compile it and compare it with the reference
%%optiml profile    measure it and say what limits it
%%optiml annotate   what became of each line: PTX, machine code, counts
%%optiml run        run it once and return its outputs
%%optiml header     keep shared device code for #include; %optiml header lists it
%optiml  best       the best program of the last optimize
%optiml  export     write it to FILE.cu, FILE.py or FILE_torch.py, which stand alone
%optiml  save       a result with all its evidence in FILE.json; %optiml load reads it
%optiml  history    the runs of this home, newest first
%optiml  compare    two results or runs: what is faster, what differs
%optiml  status     the searches that run now
%optiml  stop       end one in the background; its best so far is kept
%optiml  pause      let one in the background wait; %optiml resume goes on
%optiml  resume     go on with one that is paused, or was stopped or killed
%optiml  replay     a past search from its journal, without a device or a key
%optiml  experience what earlier runs learned: which findings and rules paid off
%optiml  doctor     what this machine can do, and what is missing
%optiml  help       this page; help COMMAND, or COMMAND -h, has the options of a command
"""
