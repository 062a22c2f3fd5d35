# frozen_string_literal: true

module Pando
  module Cluster
    # Reports the server's state to the service manager, as in sd_notify(3) (Type=notify): ready with the first
    # generation that serves, reloading, stopping, a status line, and that the monitor's loop turns (WatchdogSec=).
    # The addresses are removed from the environment: no child may report for the server. Owned by the monitor.
    class Systemd
      extend Serializable

      serialize ready: :flag, status: :text

      SOCKET = "NOTIFY_SOCKET"
      WATCHDOG = "WATCHDOG_USEC"
      WATCHDOG_PID = "WATCHDOG_PID"

      # Seconds that a stop may take longer than announced.
      MARGIN = 10.0

      # @return [Systemd] one that does nothing without a service manager
      def self.from(environment)
        path, microseconds, pid = [SOCKET, WATCHDOG, WATCHDOG_PID].map { |name| environment.delete(name) }
        meant = pid.nil? || pid.to_i == Process.pid
        new(path, (microseconds.to_i / 1e6 if meant && microseconds.to_i.positive?))
      end

      # After an upgrade.
      def self.taken_up(state)
        record = state.any("systemd") or return new(nil, nil)
        new(record.text(:path), record.read(:watchdog, :number)).take_up(record)
      end

      # @param path [String, nil] of its socket; "@" stands for an abstract one
      # @param watchdog [Float, nil] seconds within which it expects a message
      def initialize(path, watchdog)
        return unless path && !path.empty?

        @path = path
        @watchdog = watchdog
        @address = Socket.sockaddr_un(path.sub(/\A@/, "\0"))
        @socket = Socket.new(:UNIX, :DGRAM, 0)
        @interval = watchdog && (watchdog / 2)
        @told_at = 0.0
        @subscription = Events.subscribe { |event| hear(event) }
      end

      # @param status [#call] returns the line that `systemctl status` shows
      def reconcile(now = Sys.now)
        return unless @socket

        tell_status(yield) if @ready
        return unless @interval && now - @told_at >= @interval

        @told_at = now
        tell("WATCHDOG=1")
      end

      # @yieldreturn [Boolean] whether all pools serve
      def ready_when(&condition)
        @condition = condition
      end

      def due = (@told_at + @interval if @interval)

      def to_state(state)
        state.add("systemd", path: @path, watchdog: @watchdog, **serialized_fields) if @socket
      end

      # It is restored while the monitor is built, before State::OWNERS are: see .taken_up.
      def from_state(_state) = nil

      def close
        return unless @socket

        Events.unsubscribe(@subscription)
        @socket.close
      end

      private

      def hear(event)
        case event.name
        when "generation.current" then ready if @condition.nil? || @condition.call
        when "drain.started" then stopping("draining", event) if event[:seconds]
        when "monitor.stopping" then stopping("stopping", event)
        else hear_of_reload(event) if @ready
        end
      end

      # One before the first generation serves says nothing: READY=1 would start the units that depend on this one.
      def hear_of_reload(event)
        case event.name
        when "reload.started" then tell("RELOADING=1\nMONOTONIC_USEC=#{microseconds}")
        when "reload.serving", "reload.finished", "reload.failed" then tell("READY=1")
        end
      end

      # TimeoutStopSec= may be shorter than Pando's own timeouts.
      def stopping(what, event)
        seconds = (event[:seconds] || 0) + MARGIN
        tell("STOPPING=1\nSTATUS=#{what}: #{event[:reason]}\nEXTEND_TIMEOUT_USEC=#{(seconds * 1e6).to_i}")
      end

      def ready
        tell("READY=1\nMAINPID=#{Process.pid}") unless @ready
        @ready = true
      end

      def tell_status(status)
        tell("STATUS=#{status}") unless status == @status
        @status = status
      end

      # Never blocks.
      def tell(text)
        @socket.sendmsg_nonblock(text, 0, @address, exception: false)
      rescue SystemCallError
        nil # the service manager is being restarted
      end

      def microseconds = Process.clock_gettime(Process::CLOCK_MONOTONIC, :microsecond)
    end
  end
end
