# frozen_string_literal: true

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

      # @param signals [Signals]
      def take_charge(signals)
        Sys.subreaper!
        Process.setproctitle(Monitor::TITLE)
        signals.trap_all
      end

      def began_at = @began_at ||= Sys.now
      def listeners(specs) = Listeners.open(specs)
      def roster = Roster.new
      # @return [Object, nil] see Payload#reactor
      def reactor(payload) = payload.reactor
      def systemd = Systemd.from(ENV)
      def control(cluster, spec, poller) = Control.open(spec, cluster, poller)

      # All is built, and nobody lives yet.
      # @param monitor [Monitor]
      def begin(monitor)
        names = monitor.listeners.names
        names.each { |name| Events.emit("listener.opened", listen: name) }
        Events.emit("monitor.ready", pid: Process.pid, listen: names.join(","), workers: monitor.rollout.size)
        monitor.generations.begin_boot
      end
    end
  end
end
