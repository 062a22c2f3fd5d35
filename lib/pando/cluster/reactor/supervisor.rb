# frozen_string_literal: true

require "pando/cluster/restart_throttles"
require "pando/sys/scheduler"

module Pando
  module Cluster
    module Reactor
      # Keeps one reactor alive, and tells it of the workers. It starts with the first ready worker, or at once if it
      # has to answer health checks. Without a reactor clients wait in the listeners' queues. Owned by the first Pool.
      class Supervisor
        include Brief
        extend Forwardable
        extend Serializable

        # What the reactor has left undone, if it is lost; what it holds at this moment; and all that the reactors count
        # since the server's start, of all pools and of one, see HTTP::ReactorSetup.
        def_delegators :@setup, :in_flight, :state, :counters, :counters_of, :requests_of

        serialize_as "reactor", started: :flag

        # Seconds until a full link is tried again, and between two reports.
        RETRY = 0.02
        REPORT = 1.0
        # Seconds without a turn of its loop after which a reactor is taken for stuck.
        STANDSTILL = 15.0
        # Seconds if it waits for a disk meanwhile, which mostly recovers: to kill the reactor costs every connection.
        DISK_STANDSTILL = 60.0
        # Seconds between two checks whether idle workers take waiting requests, and seconds after a replacement of
        # workers in which the next fault is the reactor's.
        LOOK = 0.5
        CURE = 10.0

        def initialize(roster, spawner, lanes, listeners, setup, throttles: RestartThrottles.new)
          @throttles = throttles
          @roster = roster
          @jobs = Jobs.new(roster)
          @progress = Progress.new(roster)
          @spawner = spawner
          @lanes = lanes
          @listeners = listeners
          @opened = []
          @setup = setup
          @started = @behind = @reopening = false
          @cured_at = {}
          @reported_at = @looked_at = @moved_at = Sys.now
        end

        def reconcile(stopping)
          @lanes.close_deserted
          start if !stopping && reactor.nil? && due_to_start?
          @behind = reactor ? !(@lanes.tell(reactor) && tell_listeners && tell_of_log) : @lanes.forget_messages
          report
          look_for_progress
        end

        # @param changed [Array<Listener>] the reactor does not have them, or has other flags
        def listeners_changed(changed) = @opened.concat(changed)

        def told? = @opened.empty? && @listeners.leaving.empty?

        def due
          [(Sys.now + RETRY if @behind && reactor), (@reported_at + REPORT if reactor),
           (@looked_at + LOOK if serves? && @progress.doubtful?)].compact.min
        end

        def ready(child)
          @moved_at = Sys.now
          Events.emit("reactor.ready", **child.identity)
        end

        # @return [Float, nil] on Sys.now, when the reactor was last seen to be at work; nil: there is none
        def heard_at(_now) = (@moved_at if serves?)

        # The next reactor follows at once, unless that happens often.
        def lost(reason = nil)
          @setup.report(@jobs) # counts the last work of the lost reactor
          @throttles.fail(:reactor, reason)
        end

        # @return [Integer] requests that wait for its workers
        def waiting_for(pool) = @setup.waiting.fetch(pool)

        # @return [Boolean] whether there is an access log
        def log? = @setup.log?

        # The access log's file has been moved away. A new reactor opens it anyway.
        def reopen_log = @reopening = true

        # The lane cannot be read any more, so the answers of its worker are lost.
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
          @opened.clear # it has inherited them
          @lanes.tell_all
        end

        def tell_listeners
          @opened.shift while @opened.any? && reactor.order(Message.opening(@opened.first), [@opened.first.socket])
          told = @listeners.leaving.take_while { |listener| reactor.order(Message.closing(listener)) }
          @listeners.forget(told)
          @opened.empty? && @listeners.leaving.empty?
        end

        def tell_of_log
          @reopening &&= !reactor.order(Message.new(:reopen_log))
          !@reopening
        end

        def report
          return if reactor.nil? || Sys.now < @reported_at + REPORT

          slept = Sys.now - @reported_at > STANDSTILL / 3 # the monitor slept, with all that were stopped together
          @reported_at = Sys.now
          @setup.report(@jobs)
          @setup.waiting.each_with_index { |count, pool| @roster.scoreboard.tell_waiting(pool, count) }
          watch(slept)
        end

        # Replaces the idle workers of a pool first, which costs no request, and the reactor if that did not help.
        def look_for_progress
          return if !serves? || Sys.now < @looked_at + LOOK

          idle = @progress.look(waiting = @setup.blocked)
          @looked_at = Sys.now
          @setup.nudge if @progress.doubtful?
          idle.group_by(&:pool).each { |pool, workers| @setup.about(pool) { replace(workers, waiting.fetch(pool)) } }
        end

        def replace(idle, waiting)
          pool = idle.first.pool
          suspects = @cured_at[pool] && Sys.now - @cured_at[pool] < CURE ? [reactor] : idle
          @cured_at[pool] = Sys.now
          @progress.forget
          Events.emit("queue.blocked", waiting: waiting, idle: idle.map(&:slot).join(", "),
                                       replaced: suspects.first.role)
          suspects.each { |suspect| suspect.kill("requests waited, and none was taken by an idle worker") }
        end

        # Each report asks the reactor for a turn of its loop; the next one checks whether it came.
        def watch(slept)
          turns = @setup.turns
          moved if slept || turns != @turns
          @turns = turns
          @setup.nudge
          stood_still(Sys.now - @moved_at) if serves? && Sys.now - @moved_at > STANDSTILL
        end

        def serves? = reactor&.ready? && !reactor.condemned?

        def moved
          @moved_at = Sys.now
          @stalled = false
        end

        def stood_still(seconds)
          return reactor.kill("it stood still") if seconds > DISK_STANDSTILL || !Sys::Scheduler.waits_for_disk?(reactor.pid)
          return if @stalled

          @stalled = true
          Events.emit("reactor.stalled", **reactor.identity,
                      seconds: seconds.floor, reason: "it waits for a disk: that of TMPDIR, or of files that are sent")
        end
      end

      # The running requests of the workers behind a reactor, for reports of waiting requests. Owned by {Supervisor}.
      class Jobs
        # Requests that are named.
        NAMED = 3

        def initialize(roster)
          @roster = roster
        end

        def of(pool) = Jobs.new(@roster.everybody.of(pool))

        def workers = @roster.ready_workers.size

        # If it has the same value twice, no worker has finished or begun a request in between.
        # @return [Array, nil] nil: a worker is idle, or there is none
        def standstill
          jobs = @roster.ready_workers.map { |worker| [worker.pid, worker.row.busy_since, worker.requests] }
          jobs if jobs.any? && jobs.all? { |_, since, _| since }
        end

        # @return [String, nil] "GET /orders", "GET /orders (2), POST /cart"; nil: no worker is at a request
        def to_line
          counts = @roster.ready_workers.filter_map { |worker| worker.job[:request] }.tally
          return if counts.empty?

          named = counts.max_by(NAMED) { |_, count| count }
          rest = counts.values.sum - named.sum(&:last)
          line = named.map { |request, count| count > 1 ? "#{request} (#{count})" : request }.join(", ")
          rest.positive? ? "#{line}, and #{rest} more" : line
        end
      end

      # Detects that a pool is alive and answers no requests, whatever the reason: requests wait, none is answered,
      # and an idle worker with a heartbeat takes none of them. A slow machine does not explain that, since an idle
      # worker looks for requests with each heartbeat. While some are answered, a fast worker may simply get them all.
      # Owned by the Supervisor.
      class Progress
        # An idle worker: its number of requests when it was first seen idle, its last heartbeat, and the number of
        # checks that found a new heartbeat.
        Idler = Struct.new(:requests, :heartbeat, :beats)

        # Heartbeats of a worker that stays idle beside waiting requests, after which it is taken for blocked.
        PROOF = 2

        def initialize(roster)
          @roster = roster
          @idlers = {}
        end

        def doubtful? = @idlers.any?

        # @param waiting [Array<Integer>] how many requests wait for each pool's workers, while it answers none and the
        #   reactor's loop turns
        def look(waiting)
          before = @idlers
          wanted = idle_workers.select { |worker| waiting[worker.pool].to_i.positive? }
          @idlers = wanted.to_h { |worker| [worker.pid, idler(worker, before[worker.pid])] }
          wanted.select { |worker| @idlers[worker.pid]&.beats.to_i >= PROOF }
        end

        def forget = @idlers = {}

        private

        def idle_workers = @roster.ready_workers.reject { |worker| worker.row.busy_since || worker.condemned? }

        def idler(worker, before)
          heartbeat = worker.row.heartbeat
          return Idler.new(worker.requests, heartbeat, 0) if before&.requests != worker.requests

          beats = heartbeat == before.heartbeat ? before.beats : before.beats + 1
          Idler.new(before.requests, heartbeat, beats)
        end
      end
    end
  end
end
