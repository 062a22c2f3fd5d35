# frozen_string_literal: true

require "pando/cluster/job_record"
require "pando/cluster/listening/listener"
require "pando/cluster/poison"
require "pando/cluster/role"

module Pando
  module Cluster
    # A process in a slot that does jobs. It waits for its work and for orders in one epoll, and obeys orders between
    # two jobs, or while threads of its own do them.
    #
    # It does not know what the work is. HTTP::Handler lists what the work must answer to.
    class Worker < Role
      include JobRecord

      # Seconds that an idle worker sleeps at most. Then it shows that it lives, and in direct mode tries an accept,
      # since a wake-up may have been lost.
      TICK = 0.5
      # Seconds between two looks at whether the work rests, while a fork waits for that.
      LOOK = 0.02
      # Jobs that are measured after each order to step back: the worker is being compared.
      MEASURED = 64
      # Seconds that it waits at most for the monitor's word on whether it may leave.
      PATIENCE = 1.0
      # Seconds of its stop_timeout that the exit itself may take, if there are so many: runners interrupt jobs and
      # give them back.
      EXIT_TIME = 2.0

      # Asks to be replaced after the running job. If no other worker serves, this one goes on until its successor does.
      def leave(reason)
        return if @leaving

        @asked_until = Sys.now + PATIENCE # first: a thread may ask, while the main thread looks
        @leaving = true
        @asked_until = nil unless report(:replacement_wanted, text: reason)
      end

      # @return [Array<LaneDescriptors>] its lanes to the reactor, one for each of its threads; empty in direct mode
      attr_reader :lanes

      def reactor_eventfd = context.reactor_eventfd

      # @return [String] of its pool
      def pool_name = payload.name

      # @return [Integer] jobs done since this process was forked
      def requests = row.requests

      # @return [Float] seconds that work which libraries have queued has at its end, if there is no hurry
      def finish_within = usable(options.stop_timeout)

      # Tells the monitor whether this process may become a mold.
      def fork_safe=(safe)
        safe ? row.fork_safe! : row.fork_unsafe!
      end

      def fork_safe? = !row.fork_unsafe?

      # Tells the monitor how many long-lived connections (WebSockets) this process holds.
      def connections=(count)
        row.connections = count
      end

      # Tells the monitor that this worker should be replaced when that is convenient, see Replacements.
      def major_gc_due=(due)
        row.major_gc_due = due
      end

      def major_gc_due? = row.major_gc_due?

      # @return [Integer] of the main thread's job
      def job_number = 0

      # @return [ThreadRecord] for the jobs of another thread
      def thread_record(number) = ThreadRecord.new(self, number)

      # In a process that does several jobs at once: more of them are done.
      # @param failures [Integer] how many of them failed
      def jobs_finished(count, failures)
        sampler.take if row.count_jobs(count, failures)
      end

      # No job runs any more.
      def jobs_rest
        row.rest
        show("idle")
      end

      # Resets the counts, as if no job had been done yet.
      def forget_jobs = row.restart

      # @api private
      def job_begins = show("busy")

      # @api private
      def job_over(job, sample)
        show("idle") if row.busy_since.nil?
        sampler.take if sample
        @recorder&.job_finished(job) # the main thread, which alone replaces it, learns of its end from its tick
      end

      # @api private
      def recording? = !@recorder.nil?

      # @return [Integer, nil] seconds for which such a job is refused, since it has ended other workers; nil: it may
      #   begin
      def refused_for(verb, subject) = (refusals.seconds(verb, subject) if @serves)

      # A client that read the answer too slowly was cut off.
      # @param reader [String] its address and rate, for the log @param job [String]
      def reader_lost(reader, job) = report(:reader_lost, text: "#{reader}\n#{job}")

      def run_hook(name, *arguments) = payload.run_hook(name, self, *arguments)
      def hook?(name) = payload.hook?(name)

      # @api private
      def role = :worker

      # @api private
      def run
        end_promotion
        until leaving? && !asked?
          ready = poller.wait(sleep_time)
          row.beat
          report_signal
          payload.watch(self)
          proceed_with_log
          order = attend(ready) || take_promotion
          @recorder = @recorder.tick if @recorder
          return order.tap { end_recording("it was forked") } if order
        end
        end_recording("it leaves")
        finish
      end

      # @api private
      def start
        payload.attach(self)
        take_oom_score(:worker)
        payload.run_hook(:after_worker_fork, self)
        payload.take_up
        @work = payload.work(context.listeners, context.channel)
        read_orders # those that came while it started
        @work.start(self)
        @work.sources.each { |io, manner| poller.add(io, io, manner) }
        @idle_by = 0.0
        @title = full_title
        # Before the report: if it raises, this worker never counts as ready.
        payload.run_hook(:after_worker_ready, self)
      end

      private

      def sampler = @sampler ||= Sampler.new(row, payload)
      def show(state) = Sys.end_title(state) || Process.setproctitle("#{@title} #{state}")

      def started
        @serves = true # its self-test is over: from now on clients send the requests
        Sys.announce_crash(@link.to_io, Message.new(:crashing, **place).encode) unless options.jobs
        entitle(@title)
      end

      def entitle(title)
        @title = title
        idle = "#{title} idle"
        Process.setproctitle(idle)
        Sys.locate_title(idle)
      end

      def finish
        drain if @drain_until
        by = leave_by
        @work.stop(@draining ? Sys.now + (options.stop_timeout / 2) : nil, by)
        part_with_clients(by)
        payload.before_exit(self, by)
        proceed_with_log
        shut_listeners if @link_ended
        raise @work.failure if @work.failure
      end

      # Keeps its connections until the last one has ended or their time is up. It still obeys orders to leave sooner.
      def drain
        entitle("#{@title} draining")
        until @work.drained? || drain_over?
          ready = poller.wait((@drain_until - Sys.now).clamp(0, TICK))
          row.beat
          report_signal
          proceed_with_log
          read_orders if ready.delete(@link)
          take_promotion
          ready.each { |source| @work.ready(source) }
        end
        return unless @drain_until

        @told_at = Sys.now
        @leave_within = options.stop_timeout
      end

      def server_stops? = @draining || @link_ended || Sys.orphaned?
      def drain_over? = @drain_until.nil? || @link_ended || Sys.orphaned? || Sys.now >= @drain_until

      def leave_now(message)
        @drain_until = nil
        super
      end

      def leave_last(message)
        @drain_until = Sys.now + Float(message.text, exception: false).to_f - message.age
        depart
      end

      # The application's last hook comes between: it may still use the connections that it has taken over.
      def part_with_clients(by)
        payload.say_goodbye(by)
        payload.finish_queues(self, by || (Sys.now + finish_within)) do
          payload.run_hook(:before_worker_exit, self)
        end
        payload.hang_up(server_stops?, by)
      end

      # It wants to leave, and waits for the monitor's answer.
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

      def sleep_time
        return 0 if @pending

        pulse = @work.pulse
        @promotion ? LOOK : pulse || TICK
      end

      # Orders come all the time while a canary is on trial. They must not keep the worker from its idle work.
      def attend(ready)
        idle if Sys.now >= @idle_by && (ready.empty? || ready == [@link])
        order = read_orders if ready.delete(@link)
        serve(@pending ? @pending | ready : ready)
        order
      end

      # A fork that is due comes first, since a job may take long. Ready sources may not show it again: they are kept.
      def serve(sources)
        return @pending = sources if sources.any? && promotion_due?

        @pending = nil
        sources.each { |source| @work.ready(source) unless leaving? }
      end

      # The order to fork the next mold waits until the work rests: HTTP rests between two requests; a node's jobs may
      # end in time, else it refuses.
      def begin_promotion(order)
        @promotion&.close
        @promotion = order
        @patience = [@work.patience, order.within].compact.min
        @promotion_until = Sys.now + @patience
        nil
      end

      # @return [Boolean] whether nothing is left to wait for: no job begins before the fork
      def promotion_due? = !@promotion.nil? && !@promotion.cancelled? && !leaving? && @work.rest?

      # @return [ForkOrder, nil] one that is to be carried out now
      def take_promotion
        return unless @promotion
        return abandon_promotion if @promotion.cancelled? || leaving?
        return refuse_promotion if !@work.rest? && Sys.now >= @promotion_until
        return unless @work.rest?

        @forked = true
        @promotion.tap { @promotion = nil }
      end

      # In the forker, when the fork is done or has failed.
      def end_promotion
        @work.go_on if @forked
        @forked = false
      end

      def refuse_promotion
        report(:fork_refused, seat: @promotion.seat, text: "its running work did not end within #{@patience} s")
        abandon_promotion
      end

      def abandon_promotion
        @promotion.close
        @promotion = nil
        @work.go_on
        nil
      end

      # @return [Float, nil] when it must be gone, less what the exit itself takes; nil: there is no hurry
      def leave_by
        patience = Sys.orphaned? ? options.grace : @leave_within
        patience && (@told_at + usable(patience))
      end

      def usable(patience) = (patience - EXIT_TIME).clamp(patience * 0.4, patience * 0.8)

      def idle
        @idle_by = Sys.now + TICK
        sampler.take_if_changed
        @work.idle unless leaving?
      end

      # Lets other workers take work first. In direct mode the kernel wakes them in the order in which they came to a
      # listener (epoll_ctl(2)).
      def step_back
        row.measure(MEASURED)
        @work.step_back
        @work.sources.each { |io, manner| poller.remove(io).add(io, io, manner) if manner == :exclusive }
        nil
      end

      def obey(packet)
        case packet.message.kind
        when :leave_last then leave_last(packet.message)
        when :step_back, :stay, :try_out then send(packet.message.kind)
        when :promote then fork_order(packet)&.then { |order| begin_promotion(order) }
        when :quiet then @work.quiet
        when :serve_out then serve_out(packet)
        when :record_pages then record_pages(packet)
        when :lane then take_lane(packet)
        when :refuse, :lost_thread, :state_seen then hear(packet.message)
        else super
        end
      end

      # A further lane, for another thread. It comes before the worker starts.
      def take_lane(packet)
        lane = LaneDescriptors.from(packet.message.lane, packet.descriptors) or raise Errno::EMFILE, "a thread's lane"
        payload.keep_open(lane.ios)
        @lanes << lane
        nil
      end

      def hear(message)
        case message.kind
        when :refuse then refusals.add(message.text)
        when :lost_thread then payload.lost_thread(self, message.text)
        when :state_seen then payload.state_seen(message.text)
        end
        nil
      end

      # It is a canary without traffic: its work requests something from itself, and the monitor learns how that went.
      def try_out
        report(:tried, text: @work.try_out)
        nil
      rescue Pando::Error => e
        report(:tried_in_vain, text: e.message)
        nil
      end

      # A reload has taken this listener out: clients that wait there are served, and no more come.
      def serve_out(packet)
        return lose_clients if packet.stripped

        descriptor, *others = packet.descriptors
        others.each { |fd| Sys.close_fd(fd) }
        listener = descriptor && Listening::Listener.decode(packet.message.text, Listening::ListenerSocket.server(descriptor))
        listener ? @work.serve_out(listener, Sys.now + (options.stop_timeout / 2)) : depart
      ensure
        listener&.close
      end

      def lose_clients
        lack = Errno::EMFILE.new("clients of a listener that a reload has removed").message
        Events.emit("accept.failed", pid: pid, reason: lack)
        nil
      end

      # A user wants to know why this worker's memory is private. One recording at a time: the former one ends.
      def record_pages(packet)
        end_recording("another one was asked for")
        @recorder = payload.record_pages(self, packet.message.text, packet.descriptors)
        nil
      end

      # Ends the recording, which hands over what it has.
      def end_recording(reason) = @recorder = @recorder&.finish(reason)

      def refusals = @refusals ||= Poison::Refusals.new
      def full_title = "pando #{payload.worker_name} #{title}"
      def title = "#{slot} gen #{generation}"
      def outlives_monitor? = true
    end
  end
end
