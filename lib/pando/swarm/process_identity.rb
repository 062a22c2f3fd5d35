# frozen_string_literal: true

require "etc"
require "pando/sys/process_stat"
require "securerandom"

module Pando
  module Swarm
    # Identifies a process, so that another process on the same machine knows for certain whether it is dead. A pid
    # alone does not tell, because the kernel reuses pids: the boot of the machine, the namespace of the pid and the
    # start time of the process belong to it.
    #
    # Used in nodes, by the runners that find the jobs of dead nodes. Sidekiq's keep it as JSON (HeldJobs), Solid
    # Queue's in the metadata of their registration. A form that is not known counts as :unknown, and heartbeats decide.
    #
    # @api private
    module ProcessIdentity
      BOOT_ID = "/proc/sys/kernel/random/boot_id"
      DEAD_STATES = %w[Z X].freeze
      private_constant :BOOT_ID, :DEAD_STATES

      class << self
        # @return [Hash{String => Object}] the identity of this process:
        #   place    the machine, its boot and the namespace of pids
        #   pid      in that namespace
        #   started  ticks from the boot to its start (proc_pid_stat(5))
        def here = { "place" => place, "pid" => Process.pid, "started" => Sys::ProcessStat.read("self")&.started }

        # @param identity [Hash{String => Object}, Object] the result of {here} in a process
        # @return [:alive, :dead, :unknown] :unknown: it runs elsewhere
        def state(identity)
          return :unknown unless identity.is_a?(Hash) && identity["place"] == place

          pid = identity["pid"]
          return :unknown unless pid.is_a?(Integer) && pid.positive?

          dead?(pid, identity["started"]) ? :dead : :alive
        end

        private

        # Children are in the same place. The host's name is part of it, because a machine's image may run more than
        # once.
        def place
          @place ||= [Etc.uname[:nodename], File.read(BOOT_ID).chomp, File.readlink("/proc/self/ns/pid")].join(" ")
        rescue SystemCallError
          @place = SecureRandom.uuid # no other process matches it: a heartbeat has to decide
        end

        # /proc may hide a process of another user, but a signal still finds it.
        def dead?(pid, started)
          Process.kill(0, pid)
          stat = Sys::ProcessStat.read(pid)
          !stat.nil? && (DEAD_STATES.include?(stat.state) || stat.started != started)
        rescue Errno::ESRCH
          true
        rescue Errno::EPERM
          false
        end
      end
    end
  end
end
