# frozen_string_literal: true

require "pando/cluster"
require "pando/cluster/listening/listeners"

module Pando
  module Cluster
    # Opens and makes what the monitor owns, at the start of a server.
    #
    # After an upgrade Upgrade::Resumption, with the same methods, restores it instead.
    class Start
      # The errors of a system call that a seccomp filter refuses, or the kernel lacks.
      REFUSALS = [Errno::ENOSYS, Errno::EPERM].freeze
      private_constant :REFUSALS

      # @return [Boolean] whether this is only a rehearsal of an upgrade
      def rehearsal? = false
      def fresh? = true

      def take_charge(signals)
        check_pidfds
        Sys.subreaper!
        Process.setproctitle(Monitor::TITLE)
        signals.trap_all
      end

      def began_at = @began_at ||= Sys.now
      # @return [Integer, nil] the soft limit of open files that the server was given; nil: that of this process
      def open_files = nil
      # @return [Listening::Inherited] what a service manager has opened for the server
      def inherited_sockets = @inherited_sockets ||= Listening::Inherited.from(ENV)
      def listeners(specs) = Listening::Listeners.open(specs, inherited_sockets)
      def roster = shared { Roster.new }
      def reactor(payload) = shared { payload.reactor }
      def systemd = Systemd.from(ENV)
      def control(cluster, spec, poller) = Control.open(spec, cluster, poller)
      def admin(control, spec, poller) = AdminSupervisor.open(spec, control, poller)

      # Called when all parts are built, and before any child is ordered.
      def begin(monitor)
        monitor.listeners.each { |one| Events.emit("listener.opened", **one.identity) }
        names = monitor.listeners.names
        Events.emit("monitor.listening", pid: Process.pid, listen: names.join(","), **monitor.pools.sizes)
        monitor.pools.boot
      end

      # Emits server.ready once every worker serves. A later reload or death does not repeat it.
      def proceed(monitor)
        return if @complete || !monitor.complete?

        @complete = true
        listen = monitor.listeners.names
        Events.emit("server.ready", pid: Process.pid, **monitor.pools.sizes,
                                    threads: monitor.pools.first.roster.threads, seconds: monitor.age.round(3),
                                    **monitor.payload.introduction(listen), listen: listen.join(","))
      end

      private

      # Without them a hung process could not be killed, and nothing else would say why.
      def check_pidfds
        process = Sys::Pidfd.new(Process.pid)
        Sys.pidfd_signal(process.to_io, 0)
      rescue *REFUSALS => e
        raise refusal("the server's processes cannot be watched", e, "pidfd_open(2)", "pidfd_send_signal(2)")
      ensure
        process&.close
      end

      # The block makes memory that processes share, which is a file to the kernel, or an eventfd that wakes them.
      def shared
        yield
      rescue Errno::EFBIG
        raise BootError, "a file may have #{Process.getrlimit(:FSIZE).first} bytes here (RLIMIT_FSIZE), and the " \
                         "memory that the server's processes share needs more: raise the limit, by `ulimit -f " \
                         "unlimited` or in the systemd unit by LimitFSIZE=infinity"
      rescue *REFUSALS => e
        raise refusal("what wakes the server's processes cannot be made", e, "eventfd2(2)") if of_eventfd?(e)

        raise refusal("the memory that the server's processes share cannot be made", e, "memfd_create(2)")
      end

      def of_eventfd?(error) = error.message.end_with?(" - eventfd")

      def refusal(fault, error, *calls)
        needed = calls.one? ? "call #{calls.first}: allow it" : "calls #{calls.join(" and ")}: allow them"
        BootError.new("#{fault}: #{error.message}. Pando needs the system #{needed} in the seccomp filter of the " \
                      "container or service")
      end
    end
  end
end
