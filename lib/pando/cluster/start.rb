# frozen_string_literal: true

require "pando/cluster/listening/listeners"

module Pando
  module Cluster
    # How a monitor comes by what it owns: at the start of a server it opens and makes all of it.
    #
    # After an upgrade it has all of it already: see Upgrade::Resumption, which answers alike.
    #
    # @api private
    class Start
      # @return [Boolean] it is only a try
      def rehearsal? = false
      # @return [Boolean] a server begins; it does not go on under another monitor
      def fresh? = true

      # @param signals [Signals]
      def take_charge(signals)
        Sys.subreaper!
        Process.setproctitle(Monitor::TITLE)
        signals.trap_all
      end

      def began_at = @began_at ||= Sys.now
      # @return [Listening::Inherited] what a service manager has opened for us
      def inherited_sockets = @inherited_sockets ||= Listening::Inherited.from(ENV)
      def listeners(specs) = Listening::Listeners.open(specs, inherited_sockets, Systemd::DescriptorStore.from(ENV))
      def roster = shared { Roster.new }
      # @return [Object, nil] see Payload#reactor
      def reactor(payload) = shared { payload.reactor }
      def systemd = Systemd.from(ENV)
      def control(cluster, spec, poller) = Control.open(spec, cluster, poller)

      # All is built, and nobody lives yet.
      # @param monitor [Monitor]
      def begin(monitor)
        monitor.listeners.each { |one| Events.emit("listener.opened", **one.identity) }
        names = monitor.listeners.names
        Events.emit("monitor.listening", pid: Process.pid, listen: names.join(","), **monitor.pools.sizes)
        monitor.pools.boot
      end

      # Called at each turn of the monitor's loop. Tells once that every worker serves; a reload or a death later on
      # does not make the server ready again.
      # @param monitor [Monitor]
      def proceed(monitor)
        return if @complete || !monitor.complete?

        @complete = true
        listen = monitor.listeners.names
        Events.emit("server.ready", pid: Process.pid, **monitor.pools.sizes, seconds: monitor.age.round(3),
                                    **monitor.payload.introduction(listen), listen: listen.join(","))
      end

      private

      # Makes memory that processes share, which is a file to the kernel.
      def shared
        yield
      rescue Errno::EFBIG
        raise BootError, "a file may have #{Process.getrlimit(:FSIZE).first} bytes here (RLIMIT_FSIZE), and the " \
                         "memory that the server's processes share needs more: raise the limit, by `ulimit -f " \
                         "unlimited` or in the systemd unit by LimitFSIZE=infinity"
      end
    end
  end
end
