# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/context"
require "pando/cluster/line_losses"
require "pando/cluster/link"
require "pando/cluster/oom_score"
require "pando/cluster/passing_fault"
require "pando/events"

module Pando
  module Cluster
    # What mold, worker and service have in common: a link, a row on the
    # scoreboard, and how a forked process becomes the monitor's child.
    #
    # A role's #run returns nil when the process is to end, or a ForkOrder;
    # after the fork it is called again and takes up where it was.
    #
    # @api private
    class Role
      include Brief

      DETAIL_LIMIT = 24_000 # bytes of a failure's backtrace
      DEATH = 1.0 # seconds that the monitor's may take

      attr_reader :seat, :slot, :generation, :context, :row

      # @param order [ForkOrder] or anything that answers alike
      def initialize(order, context)
        @seat = order.seat
        @slot = order.slot
        @generation = order.generation
        @link = order.link
        @lane_descriptors = order.lane_descriptors
        @context = context
        @leaving = @draining = false
        @told_at = Sys.now
        @losses = LineLosses.new
        @row = context.scoreboard.take(seat)
      end

      def pid = Process.pid

      # @return [Array<IO>] what must stay open whatever the application closes
      def ios = [@link.to_io, *context.ios, *@lane_descriptors&.ios]

      def payload = context.payload
      def options = context.options

      # @return [Boolean] it takes nothing new; what it has begun it ends
      def leaving? = @leaving || Sys.orphaned?

      # From the fork to the report of readiness.
      # @param trouble [Exception, nil] what a library's fork hook raised in this process
      def enter(trouble = nil)
        Sys.wait_adoption(context.monitor_pid, options.spawn_timeout)
        bind_to_monitor
        name_process("booting")
        exit!(1) unless report(:adopted) # the monitor gave this order up
        raise trouble if trouble

        take_seat
        set_traps
        step_by_step { |tell| payload.after_fork(self, &tell) }
        start
        prove_fit
        row.beat # its start may have taken long: it has not stood still
        report(:ready)
        started
      end

      # Ends with the monitor: at once where nothing would be lost.
      def bind_to_monitor
        outlives_monitor? ? Sys.outlive_parent!(options.grace) : Sys.die_with_parent!
        exit!(1) unless Sys.parent_pid == context.monitor_pid # it died before the signal was set
      end

      # Not before the report: the seat of an order that was given up may be another's.
      def take_seat = row.claim(Message::ROLES.index(role), slot, generation)

      # A last look, when all is set up as it is to serve.
      def prove_fit
        step_by_step { |tell| payload.verify(self, &tell) }
        payload.audit(self)
      end

      # The monitor is told of each step before it is taken, for it may never end.
      # @yieldparam tell [#call] takes the name of a step
      def step_by_step
        told = false
        yield ->(name) { told = report(:checking, text: name) }
        report(:checking) if told
      end

      # In a forked child, of the role that its forker had.
      def abandon
        @link.close
        @lane_descriptors&.close
        @poller&.close
      end

      # @param order [ForkOrder]
      def before_fork(order)
        payload.hand_down(order.role)
        payload.run_hook(:before_fork)
        payload.before_fork(self, order.role)
      end

      # @return [Boolean] false when the monitor is gone
      def report(kind, seat: self.seat, text: "")
        @link.send(Message.new(kind, **place, seat: seat, text: text))
      end

      # The summary in one record, the backtrace in as many as it takes.
      def report_failure(error)
        lines = ["#{error.message} (#{error.class})", *error.backtrace]
        cause = error.cause
        lines.push("caused by: #{cause.message} (#{cause.class})", *cause.backtrace) if cause
        text = lines.map(&:b).join("\n")[0, DETAIL_LIMIT]
        text.scan(/.{1,#{Message::TEXT_BYTES}}/mn) { |part| report(:detail, text: part) }
        summary = "#{error.message.lines.first&.chomp} (#{error.class})"
        @link.send(Message.failure(PassingFault.of?(error), **place, text: summary))
      end

      private

      # The monitor decides what a terminal's ^C or hang-up means, and what TERM to one process does, or to all of them.
      def set_traps
        %w[INT HUP USR1 USR2 TTIN TTOU].each { |name| trap(name) { nil } }
        %w[TERM QUIT].each { |name| trap(name) { told_by(name) } }
        trap("CHLD", "DEFAULT")
      end

      # In the handler.
      def told_by(signal) = (@told_by = signal)

      def pass_signal_on
        report(:signalled, text: @told_by) if @told_by
        @told_by = nil
      end

      # A monitor that dies ends its links a moment before the kernel tells of its death. What is to be done then the
      # signal's handler does (see HTTP::DirectHandler#start), and this process may be the only one left to do it.
      def shut_listeners
        deadline = Sys.now + DEATH
        sleep(0.005) until context.listeners.none?(&:socket) || Sys.orphaned? || Sys.now > deadline
      end

      def proceed_with_log
        Events.proceed
        @losses.news { |kind, lines| report(kind, text: lines.to_s) }
      end

      def started; end

      def take_oom_score(role)
        OOMScore.set(role, options.oom_score_adj, monitor: context.monitor_pid)
      end

      def name_process(state)
        Process.setproctitle("#{full_title} #{state}".strip)
      end

      def full_title = ["pando", role, context.pool, title].compact.join(" ")

      def poller
        @poller ||= Sys::Poller.new.add(@link, @link)
      end

      # Reads all orders on the link.
      # @return [ForkOrder, nil]
      def read_orders
        loop do
          packet = @link.receive
          case packet
          when :nothing then return
          when :closed then return be_orphaned
          end
          order = obey(packet)
          return order if order
        end
      rescue Link::Malformed
        depart
      end

      # Others are to be given work first.
      # @return [nil]
      def step_back; end

      # To be given work first, for others are to be forked from it.
      # @return [nil]
      def train; end

      # The link tells it before the kernel's signal does, or because the monitor wants no more to do with this process:
      # then it must be gone as soon.
      def be_orphaned
        @link_ended = true
        @leave_within = options.grace
        @told_at = Sys.now
        depart
      end

      # Told to leave, or without a monitor: there is nothing to stay for.
      def depart
        @leaving = true
        nil
      end

      # Only a worker asks whether it may go.
      def stay; end

      def obey(packet)
        case packet.message.kind
        when :leave, :drain
          @draining = packet.message.kind == :drain
          @leave_within = Float(packet.message.text, exception: false)
          @told_at = Sys.now - packet.message.age
          depart
        when :step_back then step_back
        when :train then train
        when :stay then stay
        when :spawn, :promote then fork_order(packet)
        end
      end

      # Of an order that came without what it needs: there was no room for more descriptors here.
      def fork_order(packet)
        order = ForkOrder.from(packet)
        report(:fork_failed, seat: packet.message.seat, text: Errno::EMFILE.new.message) unless order
        order
      end

      def place = { role: role, seat: seat, slot: slot, generation: generation }
    end
  end
end
