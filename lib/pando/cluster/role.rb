# frozen_string_literal: true

require "pando/cluster/failure_report"
require "pando/cluster/link"
require "pando/cluster/oom_score"
require "pando/cluster/stacks"
require "pando/cluster/stats"
require "pando/line_writer"

module Pando
  module Cluster
    # The inherited, shared things that a process keeps when its role changes.
    #
    #   listeners        Array<Listener>; behind a reactor only their names
    #   channel          the reactor's shared memory
    #   reactor_eventfd  what wakes the reactor; both IOs, nil in direct mode
    #   pool             the name of its pool; nil: there is only one
    Context = Struct.new(:monitor_pid, :scoreboard, :listeners, :channel, :reactor_eventfd, :pool, :payload,
                         keyword_init: true) do
      def options = payload.options

      # For a service, or another pool's first mold: without what belongs to clients, unless that pool serves them too.
      def of_pool(name, serves: false)
        return self.class.new(**to_h, pool: name) if serves

        ios.each(&:close)
        self.class.new(**to_h, pool: name, listeners: [], channel: nil, reactor_eventfd: nil)
      end

      # @return [Array<IO>] what must stay open, whatever the application closes
      def ios = [*listeners.map(&:socket), channel, reactor_eventfd].compact
    end

    # The part that mold, worker and service have in common: a link, a row on the scoreboard, and how a forked process
    # becomes the monitor's child.
    #
    # #run returns nil when the process should end, or a ForkOrder. After the fork it is called again and continues.
    class Role
      include Brief

      DEATH = 1.0 # seconds that the monitor's death may take

      attr_reader :seat, :slot, :generation, :context, :row

      def initialize(order, context)
        @seat = order.seat
        @slot = order.slot
        @generation = order.generation
        @link = order.link
        @lanes = [order.lane_descriptors].compact
        @context = context
        @leaving = @draining = false
        @told_at = Sys.now
        @lost_lines = LineWriter.lost
        @row = context.scoreboard.take(seat)
      end

      def pid = Process.pid

      # @return [Array<IO>] what must stay open, whatever the application closes
      def ios = [@link.to_io, *context.ios, *@lanes.flat_map(&:ios)]

      def payload = context.payload
      def options = context.options

      # @return [Boolean] whether it takes nothing new and finishes what it has begun
      def leaving? = @leaving || Sys.orphaned?

      # Runs from the fork to the report of readiness.
      # @param trouble [Exception, nil] what a library's fork hook raised in this process
      def enter(trouble = nil)
        Sys.wait_adoption(context.monitor_pid, options.spawn_timeout)
        bind_to_monitor
        name_process("booting")
        exit!(1) unless report(:adopted) # the monitor has cancelled this order
        raise trouble if trouble

        take_seat
        set_traps
        step_by_step { |tell| payload.after_fork(self, &tell) }
        start
        self_check
        row.beat # its start may have taken long, which is no standstill
        report_ready
        started
      end

      # The process ends with the monitor, at once if nothing would be lost.
      def bind_to_monitor
        outlives_monitor? ? Sys.outlive_parent!(options.grace) : Sys.die_with_parent!
        exit!(1) unless Sys.parent_pid == context.monitor_pid # it died before the signal was set
      end

      # Only after the report: the seat of a cancelled order may belong to another process.
      def take_seat = row.claim(Message::ROLES.index(role), slot, generation)

      # The last check, when all is set up as it will serve.
      def self_check
        step_by_step { |tell| payload.verify(self, &tell) }
        payload.audit(self)
      end

      # Tells the monitor of each step before it begins, since a step may hang.
      # @yieldparam tell [#call] takes the name of a step
      def step_by_step
        told = false
        yield ->(name) { told = report(:checking, text: name) }
        report(:checking) if told
      end

      # In a forked child: closes what belongs to its forker's role.
      def abandon
        @link.close
        @lanes.each(&:close)
        @work&.abandon
        @poller&.close
      end

      def before_fork(order)
        payload.hand_down(order.role)
        payload.run_hook(:before_fork)
        payload.before_fork(self, order.role)
      end

      # @return [Boolean] false: the monitor is gone
      def report(kind, seat: self.seat, text: "")
        @link.send(Message.new(kind, **place, seat: seat, text: text))
      end

      def report_ready = report(:ready)

      # Sends the backtrace in as many records as it takes, and the summary in the last one.
      def report_failure(error)
        failure = FailureReport.new(error)
        failure.detail.scan(/.{1,#{Message::TEXT_BYTES}}/mn) { |part| report(:detail, text: part) }
        @link.send(Message.failure(failure.passing?, **place, text: failure.summary))
      end

      private

      # The monitor decides what a terminal's ^C or hang-up means, and what TERM to one process or to all does.
      def set_traps
        %w[INT HUP USR1 USR2 TTIN].each { |name| trap(name) { nil } }
        trap("TTOU") { Stacks.reports.each { |text| report(:stack, text: text) } if row.take_stacks_wanted }
        %w[TERM QUIT].each { |name| trap(name) { signalled(name) } }
        trap("CHLD", "DEFAULT")
      end

      # Runs in the signal handler.
      def signalled(signal) = (@signalled_by = signal)

      def report_signal
        report(:signalled, text: @signalled_by) if @signalled_by
        @signalled_by = nil
      end

      # A monitor that dies closes its links a moment before the kernel sends the parent-death signal. The handler of
      # that signal shuts the listeners (see HTTP::DirectHandler#start), and this process may be the last one that can.
      def shut_listeners
        deadline = Sys.now + DEATH
        sleep(0.005) until context.listeners.none?(&:socket) || Sys.orphaned? || Sys.now > deadline
      end

      def proceed_with_log
        Events.proceed
        report_lost_lines
      end

      def report_lost_lines
        lost = LineWriter.lost - @lost_lines
        @lost_lines += lost
        report(:lines_lost, text: lost.to_s) if lost.positive?
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

      # Reads the orders on the link, up to one to fork.
      def read_orders
        loop do
          packet = @link.receive
          case packet
          when :nothing then return
          when :closed then return link_ended
          end
          order = obey(packet)
          return order if order
        end
      rescue Link::Malformed
        depart
      end

      # The monitor is dead, and the kernel's signal is about to come; or it has dropped this process, which must leave.
      def link_ended
        @link_ended = true
        @leave_within = options.grace
        @told_at = Sys.now
        depart
      end

      # The process was told to leave, or has no monitor.
      def depart
        @leaving = true
        nil
      end

      def obey(packet)
        case packet.message.kind
        when :leave, :drain then leave_now(packet.message)
        when :spawn, :promote then fork_order(packet)
        end
      end

      def leave_now(message)
        @draining = message.kind == :drain
        @leave_within = Float(message.text, exception: false)
        @told_at = Sys.now - message.age
        depart
      end

      # An order may come without its descriptors if this process has no room for more.
      def fork_order(packet)
        order = ForkOrder.from(packet)
        report(:fork_failed, seat: packet.message.seat, text: Errno::EMFILE.new.message) unless order
        order
      end

      def place = { role: role, seat: seat, slot: slot, generation: generation }
    end
  end
end
