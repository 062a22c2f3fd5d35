# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/serializable"
require "pando/cluster/throttling/restart_throttles"
require "pando/cluster/reactor/disk_wait"
require "pando/cluster/reactor/jobs"
require "pando/cluster/reactor/progress"
require "pando/events"

module Pando
  module Cluster
    module Reactor
      # Keeps one reactor alive, and tells it of the workers. The first one starts
      # with the first worker that is ready, unless it has to answer for our health:
      # until then clients wait in the listeners' queues, as they do while there is none.
      #
      # Owned by the monitor.
      #
      # @api private
      class Supervisor
        include Brief
        extend Serializable

        serialize_as "reactor", started: :flag

        # Seconds until a full link is tried again, and between two reports.
        RETRY = 0.02
        REPORT = 1.0
        # Seconds without a turn of its loop after which a reactor is taken for stuck.
        STANDSTILL = 15.0
        # Seconds if it waits for a disk meanwhile, which most often comes back: to kill it costs every connection.
        DISK_STANDSTILL = 60.0
        # Seconds between two looks whether idle workers get what waits, once there is doubt; and seconds after which
        # new workers that get nothing either are no longer taken for the cause.
        LOOK = 0.5
        CURE = 10.0

        # @param throttles [Throttling::RestartThrottles] that of the reactor
        def initialize(roster, spawner, lanes, listeners, setup, throttles: Throttling::RestartThrottles.new)
          @throttles = throttles
          @roster = roster
          @jobs = Jobs.new(roster)
          @progress = Progress.new(roster)
          @spawner = spawner
          @lanes = lanes
          @listeners = listeners
          @opened = []
          @setup = setup
          @started = @behind = false
          @reported_at = @looked_at = @moved_at = Sys.now
        end

        # Called at each turn of the monitor's loop, in its last ones too.
        def reconcile(stopping)
          @lanes.close_deserted
          start if !stopping && reactor.nil? && due_to_start?
          @behind = reactor ? !(@lanes.tell(reactor) && tell_listeners) : @lanes.tell_nobody
          report
          look_for_progress
        end

        # @param changed [Array<Listener>] it has them not, or not with these flags
        def listeners_changed(changed) = @opened.concat(changed)

        # @return [Boolean] whether it knows all listeners
        def told? = @opened.empty? && @listeners.leaving.empty?

        # @return [Float, nil]
        def due
          [(Sys.now + RETRY if @behind && reactor), (@reported_at + REPORT if reactor),
           (@looked_at + LOOK if reactor && @progress.doubtful?)].compact.min
        end

        def ready(child)
          @moved_at = Sys.now
          Events.emit("reactor.ready", **child.identity)
        end

        # @return [Float, nil] on Sys.now, when the reactor was last seen to be at work; nil: there is none
        def heard_at(_now) = (@moved_at if reactor&.ready? && !reactor.condemned?)

        # @return [Hash{Symbol => Integer}] what a reactor that is gone has left undone
        def in_flight = @setup.in_flight

        # Another one follows at once, unless that happens often.
        def lost(reason = nil)
          @setup.report(@jobs) # what it did last
          @throttles.fail(:reactor, reason)
        end

        # What it holds at this moment.
        # @return [Hash{Symbol => Integer}]
        def state = @setup.state

        # It cannot be read any more, so what its worker answers reaches nobody.
        def lane_corrupt(number)
          worker = @lanes.owner(number)
          worker&.kill("its lane to the reactor is damaged")
        end

        private

        def reactor = @roster.reactor

        def due_to_start? = @throttles.over?(:reactor) && (@started || @setup.early? || @roster.ready_workers.any?)

        def start
          return @throttles.fail(:reactor, "it could not be started", refused: true) unless @spawner.reactor(@setup)

          @started = true
          @opened.clear # it was born with them
          @lanes.tell_all
        end

        # @return [Boolean] whether it knows all now
        def tell_listeners
          @opened.shift while @opened.any? && reactor.order(Message.opening(@opened.first), [@opened.first.socket])
          told = @listeners.leaving.take_while { |listener| reactor.order(Message.closing(listener)) }
          @listeners.forget(told)
          @opened.empty? && @listeners.leaving.empty?
        end

        def report
          return if reactor.nil? || Sys.now < @reported_at + REPORT

          slept = Sys.now - @reported_at > STANDSTILL / 3 # we did, and whoever was stopped with us
          @reported_at = Sys.now
          @setup.report(@jobs)
          watch(slept)
        end

        # A worker is exchanged first, which costs no request; if that was no help, the reactor.
        def look_for_progress
          return if reactor.nil? || !reactor.ready? || reactor.condemned? || Sys.now < @looked_at + LOOK

          idle = @progress.look(@setup.blocked?)
          @looked_at = Sys.now
          @setup.nudge if @progress.doubtful?
          exchange(idle) if idle.any?
        end

        def exchange(idle)
          suspects = @cured_at && Sys.now - @cured_at < CURE ? [reactor] : idle
          @cured_at = Sys.now
          @progress.forget
          Events.emit("queue.blocked", waiting: @setup.state[:waiting], idle: idle.map(&:slot).join(", "),
                                       replaced: suspects.first.role)
          suspects.each { |suspect| suspect.kill("requests waited, and none was taken by an idle worker") }
        end

        # Each report asks for a turn; the next one sees whether it came.
        def watch(slept)
          turns = @setup.turns
          moved if slept || turns != @turns
          @turns = turns
          @setup.nudge
          return if reactor.condemned? || !reactor.ready?

          stood_still(Sys.now - @moved_at) if Sys.now - @moved_at > STANDSTILL
        end

        def moved
          @moved_at = Sys.now
          @stalled = false
        end

        def stood_still(seconds)
          return reactor.kill("it stood still") if seconds > DISK_STANDSTILL || !DiskWait.of?(reactor.pid)
          return if @stalled

          @stalled = true
          Events.emit("reactor.stalled", pid: reactor.pid, seconds: seconds.floor,
                                         reason: "it waits for a disk: that of TMPDIR, or of files that are sent")
        end
      end
    end
  end
end
