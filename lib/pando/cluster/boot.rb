# frozen_string_literal: true

require "pando/cluster/cold_boot_command"
require "pando/cluster/link"
require "pando/cluster/listening/listener"
require "pando/cluster/mold"
require "pando/cluster/passing_fault"
require "pando/cluster/service"
require "pando/cluster/worker"

module Pando
  module Cluster
    # Runs a process that the monitor started by exec: the mold of a cold boot, from which its generation is forked.
    class Boot
      VARIABLE = "PANDO_BOOT"
      # The descriptors that the monitor hands over (see Spawner#cold_mold).
      LINK = 3
      SCOREBOARD = 4
      # After the listeners come the channel and the eventfd that wakes the reactor, except in direct mode.
      FIRST_LISTENER = 5

      # @yieldparam pool [String, nil] the name of the pool whose mold it becomes; nil: there is only one
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
        Sys.watch_crashes
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

      # A mold leaves without at_exit handlers: those of the worker that it was forked from would close its files.
      def leave(role)
        exit unless role.is_a?(Mold)

        [$stdout, $stderr].each { |io| flush(io) }
        exit!(0)
      end

      def flush(io)
        io.flush
      rescue IOError
        nil # the application has closed it
      end
    end

    # The stack frame to which every role returns before a fork. A fork from inside a role would leave its frames on the
    # stack of each generation, until there was no room left. #run is the outermost call of molds, workers and services.
    class BaseFrame
      ROLES = { mold: Mold, worker: Worker, service: Service }.freeze

      # @return [Role] the last role that this process had
      def run(role)
        while (order = role.run)
          role = fork_for(role, order)
        end
        role
      rescue SystemExit, SignalException
        raise # the application wants to exit
      rescue Exception => e # rubocop:disable Lint/RescueException
        role.report_failure(e)
        exit(1)
      end

      private

      def fork_for(role, order)
        forker = Process.pid
        return cancel(role, order) if order.cancelled?

        role.before_fork(order)
        refuse_closed_streams
        Sys.probe_fork
        role.payload.around_fork { Sys.fork_sibling } ? cancel(role, order) : become(role, order)
      rescue Exception => e # rubocop:disable Lint/RescueException
        # The fork hook of a library may raise on either side.
        return become(role, order, e) unless Process.pid == forker
        raise unless e.is_a?(StandardError) || e.is_a?(NoMemoryError)

        refuse(role, order, kind_of_refusal(e), e)
      end

      # Ruby's fork would raise IOError, which does not tell what is closed.
      def refuse_closed_streams
        require "pando/fork_safety/streams" # not in the monitor, which loads this file as well
        name, = { "$stdout" => $stdout, "$stderr" => $stderr }.find { |_, io| ForkSafety::Streams.prevents_fork?(io) }
        raise Error, "#{name} is closed, and Ruby flushes it at each fork. Use #{name}.reopen(File::NULL)" if name
      end

      def kind_of_refusal(error)
        return :fork_declined if error.is_a?(ForkDeclined)

        passing?(error) ? :fork_failed : :fork_refused
      end

      # Whether another try may succeed: the fault is not the generation's.
      def passing?(error)
        error.is_a?(SystemCallError) || PassingFault.of?(error) || (error.is_a?(Error) && error.passing?)
      end

      def refuse(role, order, kind, error)
        role.report(kind, seat: order.seat, text: error.message)
        cancel(role, order)
      end

      def cancel(role, order)
        order.close
        role
      end

      # No exception may escape into the frames that the fork has copied.
      def become(forker, order, trouble = nil)
        forker.abandon
        role = (order.pool ? PoolMold : ROLES.fetch(order.role)).new(order, forker.context)
        role.enter(trouble)
        role
      rescue Exception => e # rubocop:disable Lint/RescueException
        begin
          role&.report_failure(e)
        ensure
          exit!(1)
        end
      end
    end
  end
end
