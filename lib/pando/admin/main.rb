# frozen_string_literal: true

# The monitor executes this as the admin process (Cluster::AdminSupervisor).

# A terminal or a service manager sends these to all processes, but they are for the monitor: the admin process ends
# last.
%w[INT TERM QUIT HUP USR1 USR2 TTIN TTOU TSTP].each { |name| trap(name, "IGNORE") }

require "pando/admin/process"

Pando::Admin::Process.from(ENV).run
