# frozen_string_literal: true

require "pando/cluster/base_frame"
require "pando/cluster/cold_boot_command"
require "pando/cluster/listening/listener"

module Pando
  module Cluster
    # The life of a process that the monitor started by exec: it becomes the
    # mold of a cold boot, and its forks become all the rest.
    #
    # @api private
    class Boot
      VARIABLE = "PANDO_BOOT"
      # The descriptors that the monitor hands over (see Spawner#cold_mold).
      LINK = 3
      SCOREBOARD = 4
      # Behind the listeners come, unless in direct mode, the channel and the eventfd that wakes the reactor.
      FIRST_LISTENER = 5

      Order = Struct.new(:seat, :slot, :generation, :link, :lane_descriptors)

      # @yieldparam pool [String, nil] the name of the pool whose mold it becomes; nil: there is but one
      # @yieldreturn [Payload]
      # @return never: the process ends with its last role
      def self.run(&block) = new(ENV.delete(VARIABLE)).run(&block)

      # @param listeners [Array<Listener>] @param others [Integer] how many descriptors follow them
      # @param pool [String, nil] see .run
      def self.value(monitor_pid, seat, generation, listeners, others, pool = nil)
        [monitor_pid, seat, generation, others, listeners.map(&:encode).join(","), *pool].join(":")
      end

      def initialize(value)
        raise UsageError, "this is run by the pando monitor only" unless value

        ColdBootCommand.settle
        *numbers, listeners, @pool = value.split(":", -1).values_at(0..5)
        @listeners = listeners.split(",")
        @monitor_pid, seat, generation, @others = numbers.map { |number| Integer(number, 10) }
        @mold = Mold.new(Order.new(seat, 0, generation, Link.for_fd(LINK)), context)
      end

      def run(&block)
        Events.about(pool: @pool) if @pool
        @mold.boot { block.call(@pool) }
      rescue Exception => e # rubocop:disable Lint/RescueException
        @mold.report_failure(e)
        exit!(1)
      else
        leave(BaseFrame.new.run(@mold))
      end

      private

      def context
        scoreboard = Sys::Scoreboard.attach(SCOREBOARD).guard
        scoreboard.close_fd # the mapping stays
        channel, eventfd = (0...@others).map { |place| inherit(FIRST_LISTENER + @listeners.size + place) }
        ingress = listeners
        ingress.each(&:leave_to_reactor) if channel # else the port would be taken for as long as any of us lives
        Context.new(monitor_pid: @monitor_pid, scoreboard: scoreboard, listeners: ingress,
                    channel: channel, reactor_eventfd: eventfd, pool: @pool)
      end

      def listeners
        @listeners.map.with_index { |text, place| Listening::Listener.decode(text, Listening::ListenerSocket.server(FIRST_LISTENER + place)) }
      end

      def inherit(descriptor)
        IO.for_fd(descriptor, "r+b").tap { |io| io.close_on_exec = true }
      end

      # A mold carries the at_exit handlers of what it was forked from, whose
      # files and sockets are still in use: it leaves without running them.
      def leave(role)
        exit unless role.is_a?(Mold)

        [$stdout, $stderr].each(&:flush)
        exit!(0)
      end
    end
  end
end
