# frozen_string_literal: true

require "pando/http/reactor_handler"

module Pando
  module HTTP
    # What an HTTP worker with threads does behind the reactor: each thread has a lane of its own and serves its
    # requests. The main thread serves none. It obeys the monitor, and sleeps on an eventfd, the bell, by which threads
    # call it. See {Handler}.
    #
    # Before a fork the lanes close, the requests end, and the threads are joined: no other thread may live then, since
    # the child would not have it. Afterwards they start again. The kernel may refuse some of them: then the worker
    # serves with those that it has, the main thread serves in place of the first if there is none, and each idle
    # moment brings another try. A new worker that is refused a thread never becomes ready.
    class ThreadedHandler < ReactorHandler
      attr_reader :patience, :failure

      # Seconds that the requests have to end before a fork, at most; the monitor then asks another worker.
      DRAIN = 30.0
      # Seconds that the application has to notice that its streams have ended, when the server stops.
      STREAMS = 2.0
      # The share of `stop_timeout` that there is for them in a worker that is replaced.
      USABLE = 0.8
      # Seconds at most that are left after them for the application's last hook, and for its WebSockets to close.
      PARTING = 2.0
      # Seconds between two looks at the threads in a worker that ends.
      LOOK = 0.05
      ONE = [1].pack("Q").freeze # what an eventfd is written (eventfd(2))

      def initialize(app, listeners, config, channel, self_test: config.self_test)
        super
        @counts_lock = config.threads == :auto
        @stop_timeout = config.stop_timeout
        @patience = [DRAIN, *@limits.hard_timeout].min
      end

      def start(worker)
        @worker = worker
        @bell = IO.for_fd(Channel.eventfd, "r+b")
        prepare_environments(multithread: true)
        prepare_lanes
        prepare_own
        run_self_test
        @collector.start(worker)
        @servers.first.lane.follow_lock(@counts_lock)
        @stopping = @serves_here = false
        @reported = Thread::Queue.new
        @threads = @servers.zip(@timeouts).map { |server, timeout| start_thread(server, timeout) }
        ring # they begin when the worker has reported ready: before that, the monitor lets it not leave
      end

      def app=(app)
        @connection.app = app
        @servers.each { |server| server.app = app }
      end

      def sources = [[@bell, :edge]]

      # A thread or the monitor's signal has called.
      def ready(_bell)
        silence
        @reported.close
        @timeouts.each(&:interrupt)
        worker.leaving? ? stop_threads : keep_threads
        serve_here if alone?
        count_connections
      end

      # Also the message that a thread sleeps may have been lost.
      def idle
        lanes.each { |lane| lane.nudge if lane.offered? && lane.asleep? }
        ready(@bell)
      end

      def rest?
        stop_threads
        super && @threads.none?(&:alive?)
      end

      def go_on
        super
        start_threads
      end

      # Also the handler of the signal would ring the bell.
      def abandon
        trap(SoftTimeout::SIGNAL, "DEFAULT")
        @bell&.close
      end

      def resume = start_threads

      # The threads serve meanwhile.
      def try_out = SelfTest.replay(@safe_paths, worker) { |descriptor| serve_self_test(descriptor) }

      def drained?
        @drains = true
        stop_threads
        ended = @threads.none?(&:alive?) # asked first: a request may take its connection over as it ends
        !connected? && ended
      end

      # Streams end a little before the monitor stops waiting; at once if they have had the time of `drain`.
      #
      # @param by [Float, nil] monotonic seconds; nil: this worker is replaced, and has the time of `stop_timeout`
      def stop(deadline = nil, by = nil)
        rest_a_moment while deadline && Sys.now < deadline && lanes.any?(&:waiting?)
        stop_threads
        by ||= Sys.now + (@stop_timeout * USABLE)
        by -= ((by - Sys.now) / 4).clamp(0.0, PARTING) if connected?
        while awaited?(by)
          cut_streams if @drains || Sys.now >= by - STREAMS
          rest_a_moment
        end
      end

      private

      def lanes = @servers.map(&:lane)

      def prepare_lanes
        @timeouts = worker.lanes.map.with_index(1) do |_, number|
          record = worker.thread_record(number)
          ThreadTimeout.new(record, SlowLog.for(@slow_terms, worker, record))
        end
        @servers = worker.lanes.zip(@timeouts).map do |lane, timeout|
          lane_server(lane, timeout.record, timeout)
        end
      end

      # For requests of its own, on the main thread.
      def prepare_own
        timeout = SoftTimeout.new(worker)
        @connection = Connection.new(@app, worker, @limits, SocketReader.new(@limits), timeout)
        trap(SoftTimeout::SIGNAL) do
          timeout.interrupt
          @timeouts.first.interrupt_here if @serves_here
          ring
        end
      end

      # Also after a rest that was given up: a thread that is still at a request goes on, for a lane has one thread.
      def start_threads
        @stopping = false
        keep_threads
        ring if alone?
      end

      # A request may have ended its thread (Thread#kill), or the kernel has refused one.
      def keep_threads
        return if @stopping

        @servers.each_with_index do |server, index|
          @threads[index] = start_thread(server, @timeouts[index]) unless @threads[index].alive?
        end
        @short = false
      rescue ThreadError => e
        tell_short(e) unless @short # the next call tries again
      end

      def tell_short(refusal)
        @short = true
        Events.emit("threads.refused", slot: worker.slot, generation: worker.generation, pid: Process.pid,
                                       count: @threads.count { |thread| !thread.alive? }, reason: refusal.message)
      end

      # @return [Boolean] whether the kernel has refused all threads
      def alone? = !@stopping && @threads.none?(&:alive?)

      # A while of what the first thread does. The main thread also has the worker's orders to obey: the bell calls it
      # again at once.
      def serve_here
        server = @servers.first
        @serves_here = true
        outlive(@timeouts.first.record) { ThreadTimeout.defer { serve_within_budget { server.serve } } }
        @serves_here = false
        return if worker.leaving?

        @collector.between { !server.lane.waiting? }
        Wire.wait_readable(server.eventfd.fileno, LOOK) if server.lane.sleep
        server.lane.drain
        ring
      end

      # They end as soon as their requests have. Requests that wait go to other workers.
      def stop_threads
        return if @stopping

        @stopping = true
        @reported.close
        lanes.each do |lane|
          lane.close
          lane.nudge
        end
      end

      def start_thread(server, timeout)
        Thread.new do
          Thread.current.report_on_exception = false # Connection has told what the application raised
          @reported.pop
          Thread.current.name = "pando request #{timeout.record.job_number}"
          ThreadTimeout.defer { run(server, timeout.record.follow_lock) }
        end
      end

      # A thread, until it is to end.
      def run(server, record)
        outlive(record) do
          until ended?
            serve_within_budget { !ended? && server.serve }
            @collector.between { record.row.busy_since.nil? && !server.lane.waiting? }
            server.wait
          end
        end
      ensure
        server.lane.close
        ring
      end

      # What a request raises ends the worker, but only after the other requests.
      def outlive(record)
        yield
      rescue SystemExit, SignalException => e # the application's: it wants the process to end, but others have requests
        record.job_finished
        worker.leave("a request raised #{e.class}")
      rescue Exception => e # rubocop:disable Lint/RescueException
        @failure ||= e # such as a HookError. The other requests finish, and then the worker raises it
        worker.leave("a request's thread raised #{e.class}")
      end

      # @param by [Float] when a stream is no longer waited for
      def awaited?(by)
        late = Sys.now >= by
        @threads.each_index.any? { |index| @threads[index].alive? && !(late && @timeouts[index].record.streams?) }
      end

      def cut_streams
        @servers.zip(@timeouts) { |server, timeout| server.cut_stream if timeout.record.streams? }
      end

      def ended? = @stopping || worker.leaving?

      def ring = @bell.write_nonblock(ONE, exception: false)
      def silence = @bell.read_nonblock(8, exception: false)

      def rest_a_moment
        Wire.wait_readable(@bell.fileno, LOOK)
        silence
        @timeouts.each(&:interrupt)
      end
    end
  end
end
