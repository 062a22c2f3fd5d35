# frozen_string_literal: true

require "etc"
require "securerandom"

module Pando
  module Swarm
    module Runners
      class Sidekiq
        # Says where a process runs, in a form that another process can compare. A process in the same place knows for
        # certain whether it is alive.
        #
        #   place    the machine, its boot and the namespace of pids
        #   pid      in that
        #   started  ticks from the boot to its start (proc(5)), because pids are reused
        module Whereabouts
          class << self
            # @return [Hash{String => Object}]
            def here
              { "place" => place, "pid" => Process.pid, "started" => started(Process.pid) }
            end

            # @param where [Hash{String => Object}] the result of {here} in a process
            # @return [:alive, :dead, :unknown] :unknown: it runs elsewhere
            def state(where)
              pid = where["pid"]
              return :unknown unless where["place"] == place && pid.is_a?(Integer) && pid.positive?

              Process.kill(0, pid)
              state, since = stat(pid)
              since.nil? || (since == where["started"] && !%w[Z X].include?(state)) ? :alive : :dead
            rescue Errno::ESRCH
              :dead
            rescue Errno::EPERM
              :alive
            end

            private

            # Children are in the same place. The host's name is part of it, because a machine's image may run more than
            # once.
            def place
              @place ||= [Etc.uname[:nodename], File.read("/proc/sys/kernel/random/boot_id").chomp,
                          File.readlink("/proc/self/ns/pid")].join(" ")
            rescue SystemCallError
              @place = SecureRandom.uuid # no other process matches it: our heartbeat has to decide
            end

            def started(pid) = stat(pid)&.last

            # @return [Array(String, Integer), nil] state and start
            def stat(pid)
              fields = File.read("/proc/#{pid}/stat")[/.*\) (.*)/m, 1].split
              [fields[0], Integer(fields[19])]
            rescue Errno::ENOENT, Errno::ESRCH, Errno::EACCES
              nil
            end
          end
        end
      end
    end
  end
end
