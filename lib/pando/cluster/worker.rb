# frozen_string_literal: true

require "pando/cluster/listening/listener"
require "pando/cluster/role"
require "pando/cluster/sampler"

module Pando
  module Cluster
    # A process in a slot that does one job after another: it waits for its
    # work and for orders in one epoll, and obeys orders between two jobs.
    #
    # What the work is, it does not know: payload.work answers
    # start / sources / ready / idle / step_forward / step_back / resume / stop.
    class Worker < Role
      # Seconds an idle worker sleeps at most: then it shows that it lives and
      # tries an accept, for a wake-up may have been lost (DESIGN.md, direct mode).
      TICK = 0.5
      # Jobs that are measured after each order to step back: it is being compared.
      MEASURED = 64

      # Seconds that it waits at most for the monitor's word on whether it may leave.
      PATIENCE = 1.0

      # @return [Integer] jobs done since this process was forked
      def requests = row.requests

      # The application says that this process must not become a mold.
      def no_longer_fork_safe! = row.fork_unsafe!
      def fork_safe? = !row.fork_unsafe?

      # A job begins.
      # @param verb [String] @param subject [String] what the log shall name, nothing secret
      # @param soft [Float, nil] seconds until the monitor signals @param hard [Float, nil] until it kills
      def job_started(verb, subject, soft, hard)
        row.start_job(verb, subject, soft, hard)
        Sys.end_title("busy") || Process.setproctitle("#{@title} busy")
      end

      # New deadlines for the running job, counted from now; nil: none.
      # @return [Float] now, in monotonic seconds
      def job_deadline(soft, hard) = row.set_deadlines(soft, hard)

      def job_finished
        job = row.job_name if @recorder
        sample = row.finish_job
        row.fail_job if @job_failed
        @job_failed = false
        Sys.end_title("idle") || Process.setproctitle("#{@title} idle")
        sampler.take if sample
        @recorder = @recorder.job_finished(job) if @recorder
      end

      # The running job came to nothing, by a fault of ours. Counted once and when it is done: until then it is none
      # of the requests that failures are a share of.
      def job_failed
        @job_failed = true
      end

      # As if nothing had been done yet.
      def forget_jobs = row.restart

      # @return [Boolean]
      def soft_deadline_passed?
        deadline = row.soft_deadline
        !deadline.nil? && Sys.now >= deadline
      end

      # To be replaced after the running job. The monitor has the last word: where nobody else serves, this one goes
      # on until somebody does.
      # @param reason [String]
      def leave(reason)
        return if @leaving

        @leaving = true
        @asked_until = Sys.now + PATIENCE if report(:outworn, text: reason)
      end

      # This worker's place in the reactor's channel; nil in direct mode.
      def lane_number = @equipment&.number
      def lane_eventfd = @equipment&.eventfd
      def lane_socket = @equipment&.socket
      def reactor_eventfd = context.reactor_eventfd

      def run_hook(name, *arguments) = payload.run_hook(name, self, *arguments)
      def hook?(name) = payload.hook?(name)

      # @api private
      def role = :worker

      # @api private
      def run
        until leaving? && !asked?
          ready = poller.wait(TICK)
          row.beat
          pass_signal_on
          order = attend(ready)
          @recorder = @recorder.tick if @recorder
          return end_recording("it was forked").then { order } if order
        end
        end_recording("it leaves")
        @work.stop(@draining ? Sys.now + (options.stop_timeout / 2) : nil)
        payload.run_hook(:before_worker_exit, self)
        nil
      end

      # @api private
      def start
        payload.attach(self)
        raise_oom_score
        payload.run_hook(:after_worker_fork, self)
        @work = payload.work(context.listeners, context.channel)
        @work.start(self)
        @work.sources.each { |io, manner| poller.add(io, io, manner) }
        @title = "pando worker #{title}"
        # Before the report: if it raises, this worker never counts as ready.
        payload.run_hook(:after_worker_ready, self)
      end

      private

      def started
        idle = "#{@title} idle"
        Process.setproctitle(idle)
        Sys.locate_title(idle)
      end

      # It wants to leave, and waits to be told whether it may.
      def asked? = !@asked_until.nil? && Sys.now < @asked_until && !Sys.orphaned?

      def stay
        @asked_until = nil
        @leaving = false
        @work.resume
        nil
      end

      def depart
        @asked_until = nil
        super
      end

      def attend(ready)
        idle if ready.empty?
        order = read_orders if ready.delete(@link)
        ready.each { |source| @work.ready(source) unless leaving? }
        order
      end

      def sampler = @sampler ||= Sampler.new(row, payload)

      def idle
        sampler.catch_up
        @work.idle unless leaving?
      end

      # In direct mode the kernel wakes them in the order in which they came to a listener (epoll_ctl(2)).
      def step_back
        row.measure(MEASURED)
        @work.step_back
        @work.sources.each { |io, manner| poller.remove(io).add(io, io, manner) if manner == :exclusive }
        nil
      end

      # In direct mode it is enough that the others step back.
      def train
        payload.train(self)
        @work.step_forward
        nil
      end

      def obey(packet)
        case packet.message.kind
        when :serve_out then serve_out(packet)
        when :record_pages then record_pages(packet)
        else super
        end
      end

      # A listener that a reload has taken out: whoever waits there is served, and nobody comes after him.
      def serve_out(packet)
        descriptor, *others = packet.descriptors
        others.each { |fd| Sys.close_fd(fd) }
        listener = descriptor && Listening::Listener.decode(packet.message.text, Listening::ListenerSocket.server(descriptor))
        listener ? @work.serve_out(listener, Sys.now + (options.stop_timeout / 2)) : depart
      ensure
        listener&.close
      end

      # Somebody wants to know why its memory is its own. One at a time: the former one ends.
      def record_pages(packet)
        end_recording("another one was asked for")
        @recorder = payload.record_pages(self, packet.message.text, packet.descriptors)
        nil
      end

      # What it has seen until then is handed over.
      def end_recording(reason)
        @recorder = @recorder&.finish(reason)
      end

      # Spares monitor and mold when the kernel must choose.
      def raise_oom_score
        score = options.oom_score_adj
        File.write("/proc/self/oom_score_adj", score.to_s) if score
      rescue SystemCallError
        nil # a sandbox may forbid it: a preference, not a need
      end

      def title = "#{slot} gen #{generation}"
      def outlives_monitor? = true
    end
  end
end
