# frozen_string_literal: true

require "pando/cluster/base_frame"
require "pando/cluster/listening/listener"

module Pando
  module Cluster
    # Runs a process that the monitor started by exec. It becomes the mold of a cold boot; all other processes of its
    # generation are its forks.
    class Boot
      VARIABLE = "PANDO_BOOT"
      # The descriptors that the monitor hands over (see Spawner#cold_mold).
      LINK = 3
      SCOREBOARD = 4
      # After the listeners come the channel and the eventfd that wakes the reactor, except in direct mode.
      FIRST_LISTENER = 5

      # @yieldparam pool [String, nil] the name of the pool whose mold it becomes; nil: there is only one
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
        order = Message.new(:spawn, role: :mold, seat: seat, generation: generation)
        @mold = Mold.new(ForkOrder.new(order, Link.for_fd(LINK)), context)
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
        ingress.each(&:leave_to_reactor) if channel # else these processes would keep the port taken
        Context.new(monitor_pid: @monitor_pid, scoreboard: scoreboard, listeners: ingress,
                    channel: channel, reactor_eventfd: eventfd, pool: @pool)
      end

      def listeners
        @listeners.map.with_index { |text, place| Listening::Listener.decode(text, Listening::ListenerSocket.server(FIRST_LISTENER + place)) }
      end

      def inherit(descriptor)
        IO.for_fd(descriptor, "r+b").tap { |io| io.close_on_exec = true }
      end

      # A mold has inherited at_exit handlers of the worker that it was forked from, whose files and sockets are still
      # in use. It leaves without running them.
      def leave(role)
        exit unless role.is_a?(Mold)

        [$stdout, $stderr].each(&:flush)
        exit!(0)
      end
    end

    # The command of a cold boot, and the environment variables that it needs at the very start, such as LD_PRELOAD for
    # an allocator. The application and its children must not see them: {.settle}, in the new image, restores the former
    # values.
    class ColdBootCommand
      CHANGED = "PANDO_CHANGED"
      FORMER = "PANDO_FORMER_"

      # @return [Array<String>] the executable and arguments
      attr_reader :command

      # @param command [Array<String>, ColdBootCommand]
      # @return [ColdBootCommand]
      def self.of(command) = command.is_a?(self) ? command : new(command)

      # Called in the new image, before any code of the application.
      # @return [nil]
      def self.settle(environment = ENV)
        environment.delete(CHANGED).to_s.split.each do |name|
          former = environment.delete("#{FORMER}#{name}")
          former ? environment[name] = former : environment.delete(name)
        end
        nil
      end

      # @param variables [Hash{String => String}]
      def initialize(command, variables = {})
        @command = command
        @variables = variables
      end

      # @param own [Hash{String => String}] of the process that executes the command
      # @return [Hash{String => String}]
      def environment(own = ENV.to_h)
        return own if @variables.empty?

        former = own.slice(*@variables.keys).transform_keys { |name| "#{FORMER}#{name}" }
        own.merge(former, @variables, CHANGED => @variables.keys.join(" "))
      end
    end
  end
end
