# frozen_string_literal: true

require "pando/cluster/job_record"
require "pando/cluster/listening/listener"
require "pando/cluster/refusals"
require "pando/cluster/pending_promotion"
require "pando/cluster/role"
require "pando/cluster/worker/orders"

module Pando
  module Cluster
    # A process in a slot that does jobs: it waits for its work and for orders in one epoll, and obeys orders between
    # two jobs, or while threads of its own do them.
    #
    # What the work is, it does not know, see Payload#work.
    class Worker < Role
      include JobRecord
      include Orders

      # Seconds an idle worker sleeps at most: then it shows that it lives and
      # tries an accept, for a wake-up may have been lost (DESIGN.md, direct mode).
      TICK = 0.5
      # Jobs that are measured after each order to step back: it is being compared.
      MEASURED = 64

      # Seconds that it waits at most for the monitor's word on whether it may leave.
      PATIENCE = 1.0

      # Seconds that the end itself may take, where there is so much: runners interrupt jobs and give them back.
      FAREWELL = 2.0

      # To be replaced after the running job. The monitor has the last word: where nobody else serves, this one goes
      # on until somebody does.
      # @param reason [String]
      def leave(reason)
        return if @leaving

        @leaving = true
        @asked_until = Sys.now + PATIENCE if report(:replacement_wanted, text: reason)
      end

      # This worker's place in the reactor's channel; nil in direct mode.
      def lane_number = @lane_descriptors&.number
      def lane_eventfd = @lane_descriptors&.eventfd
      def lane_socket = @lane_descriptors&.socket
      def lane_memory = @lane_descriptors&.memory
      def reactor_eventfd = context.reactor_eventfd

      # @return [Integer, nil] seconds for which such a job is not to be begun, for it has ended others; nil: it may be
      def refused_for(verb, subject) = (refusals.seconds(verb, subject) if @serves)

      # Somebody took what a job gave too slowly, and was cut off.
      # @param reader [String] its address and rate, for the log @param job [String]
      def reader_lost(reader, job) = report(:reader_lost, text: "#{reader}\n#{job}")

      def run_hook(name, *arguments) = payload.run_hook(name, self, *arguments)
      def hook?(name) = payload.hook?(name)

      # @api private
      def role = :worker

      # @api private
      def run
        @rest.over
        until leaving? && !asked?
          ready = poller.wait(@called ? 0 : @rest.pace(TICK))
          row.beat
          pass_signal_on
          payload.watch(self)
          proceed_with_log
          order = attend(ready) || @rest.order
          @recorder = @recorder.tick if @recorder
          return end_recording("it was forked").then { order } if order
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
        read_orders # what was said while it was born
        @work.start(self)
        @work.sources.each { |io, manner| poller.add(io, io, manner) }
        @rest = PendingPromotion.new(self, @work)
        @idle_by = 0.0
        @title = full_title
        # Before the report: if it raises, this worker never counts as ready.
        payload.run_hook(:after_worker_ready, self)
      end

      private

      def started
        @serves = true # its self-test is over: from now on it is clients that ask
        Sys.announce_crash(@link.to_io, Message.new(:crashing, **place).encode) unless options.jobs
        idle = "#{@title} idle"
        Process.setproctitle(idle)
        Sys.locate_title(idle)
      end

      # @return [nil]
      def finish
        by = leave_by
        @work.stop(@draining ? Sys.now + (options.stop_timeout / 2) : nil, by)
        payload.say_goodbye(by)
        payload.finish_queues(self, by || (Sys.now + share(options.stop_timeout))) do
          payload.run_hook(:before_worker_exit, self)
        end
        payload.before_exit(self, by)
        proceed_with_log
        shut_listeners if @link_ended
        nil
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

      # Orders may come all the time, while a canary is on trial: they keep it from nothing.
      def attend(ready)
        idle if ready.empty? || (ready == [@link] && Sys.now >= @idle_by)
        order = read_orders if ready.delete(@link)
        serve(@called ? @called | ready : ready)
        order
      end

      # Who is to fork does so before it begins anything else: a mold is wanted, and what is begun may take long.
      # Who has called meanwhile may not do so again, and is remembered.
      def serve(sources)
        return @called = sources if sources.any? && @rest.due?

        @called = nil
        sources.each { |source| @work.ready(source) unless leaving? }
      end

      # When whoever told it to go ends its patience, less what the end itself takes; nil: nobody is in a hurry.
      def leave_by
        patience = Sys.orphaned? ? options.grace : @leave_within
        patience && (@told_at + share(patience))
      end

      def share(patience) = (patience - FAREWELL).clamp(patience * 0.4, patience * 0.8)

      def idle
        @idle_by = Sys.now + TICK
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
        when :promote then fork_order(packet)&.then { |order| @rest.begin(order) }
        when :quiet then @work.quiet
        when *NEWS then hear(packet.message)
        when :try_out then try_out
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

      def refusals = @refusals ||= Refusals.new

      def full_title = "pando #{payload.worker_name} #{title}"
      def title = "#{slot} gen #{generation}"
      def outlives_monitor? = true
    end
  end
end
