# frozen_string_literal: true

# Replaces itself with a server under measurement. Arguments: the pid of the command's process, the value of RUBYOPT,
# the program and its arguments. The server ends when the command does, however that ends; this survives the exec.

require "pando/sys"

command = ARGV.shift.to_i
options = ARGV.shift
Pando::Sys.die_with_parent!
exit! unless Process.ppid == command
ENV["RUBYOPT"] = options unless options.empty?
exec(*ARGV)
