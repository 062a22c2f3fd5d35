# frozen_string_literal: true

# Becomes a server that is measured: the program and its arguments follow the pid of the command's process and what
# RUBYOPT is to be. The server ends when the command does, however that ends. An exec changes nothing about that.

require "pando/sys"

command = ARGV.shift.to_i
options = ARGV.shift
Pando::Sys.die_with_parent!
exit! unless Process.ppid == command
ENV["RUBYOPT"] = options unless options.empty?
exec(*ARGV)
