# frozen_string_literal: true

require "pando/cluster/link"
require "pando/cluster/passing_fault"
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

      DETAIL_LIMIT = 24_000 # bytes of a failure's backtrace
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

      # Sends the summary in one record, and the backtrace in as many as it takes.
      def report_failure(error)
        text = [*lines_of(error), *lines_of_cause(error.cause)].join("\n")[0, DETAIL_LIMIT]
        text.scan(/.{1,#{Message::TEXT_BYTES}}/mn) { |part| report(:detail, text: part) }
        @link.send(Message.failure(PassingFault.of?(error), **place, text: summary_of(error)))
      end

      private

      # The exception of an application may answer with anything.
      # @return [Array<String>] in bytes
      def lines_of(error) = ["#{error.message} (#{error.class})", *error.backtrace].map { |line| line.to_s.b }

      # @return [String] "no key (KeyError) at config/initializers/pay.rb:7", which is all that a failed reload prints
      def summary_of(error)
        summary = "#{error.message.to_s.lines.first&.chomp} (#{error.class})"
        begin
          line = application_line(error)
          told = line.nil? || summary.match?(/(?<!\w)#{Regexp.escape(line[/.+:/])}\d/)
          told ? summary : "#{summary} at #{line}"
        rescue Exception # rubocop:disable Lint/RescueException -- nothing may hide the failure itself
          summary
        end
      end

      # @return [String, nil] the innermost line of the application that the error has passed, or else its cause
      def application_line(error)
        require "pando/code_places" # not in the monitor, which loads this file as well
        places = CodePlaces.new(Dir.pwd)
        [error, error.cause].compact.flat_map { |each| Array(each.backtrace) }.each do |frame|
          path, line = frame.to_s.scrub.match(/\A(.+?)(:\d+)/)&.captures
          path = File.realpath(path) if path && File.exist?(path) # a release may be loaded through a link to its folder
          return "#{places.short(path)}#{line}" if places.own?(path)
        end
        nil
      end

      def lines_of_cause(cause)
        return [] unless cause

        first, *rest = lines_of(cause)
        ["caused by: #{first}", *rest]
      end

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

    # Sets which process the kernel kills first when memory runs out: workers before the reactor, the reactor before the
    # mold, and the monitor last, since the server ends with it. An unprivileged process may raise its oom_score_adj,
    # and lower it to its initial value. So the monitor's own stays as it is and the others lie above it, wherever a
    # service manager has put it.
    module OOMScore
      # The kernel's highest value.
      MOST = 1000

      # Does nothing if a sandbox forbids it.
      #
      # @param above [Integer, nil] how far workers lie above the monitor; nil: no score is changed
      # @param monitor [Integer, String] its pid @param pid [Integer, String] of the process
      def self.set(role, above, monitor:, pid: "self")
        return unless above

        base = File.read("/proc/#{monitor}/oom_score_adj").to_i
        File.write("/proc/#{pid}/oom_score_adj", of(role, above, base).to_s)
      rescue SystemCallError
        nil
      end

      # The reactor lies half way between the monitor and the workers, the mold a quarter of the way. If there is little
      # room, workers are told apart first, then the reactor.
      #
      # @param base [Integer] the monitor's score
      # @return [Integer]
      def self.of(role, above, base)
        worker = [above, MOST - base].min
        reactor = worker.fdiv(2).ceil.clamp(0, [worker - 1, 0].max)
        mold = worker.fdiv(4).ceil.clamp(0, [reactor - 1, 0].max)
        base + { worker: worker, reactor: reactor, mold: mold }.fetch(role)
      end
    end

    # Where the threads of this process stand, in reports to the monitor. Runs in a signal handler, so it takes no lock.
    module Stacks
      # Bytes of all together, and of a line.
      LIMIT = 24_000
      LINE = 400
      # Bytes that a stack may have, however many there are, and of a note on what was left out. All threads that a
      # worker may have for requests fit.
      LEAST = 300
      NOTE = 60

      class << self
        # @param threads [Array<Thread>]
        # @return [Array<String>] texts for reports, the last one empty
        def reports(threads = Thread.list)
          parts = [+""]
          fitted(stacks(threads)).flatten.each do |line|
            parts << +"" if parts.last.bytesize + line.bytesize > Message::TEXT_BYTES
            parts.last << line
          end
          [*parts, ""]
        end

        private

        # The lines of each stack. The main thread comes first, because most workers serve with it, and the shortest
        # stacks last, because they are those of idle threads. These also stand at the same place, and share a stack.
        def stacks(threads)
          groups = threads.group_by { |thread| [thread == Thread.main, frames(thread)] }
          groups = groups.sort_by { |(main, frames), _| [main ? 0 : 1, -frames.size] }
          groups.map do |(_, frames), same|
            [title(same), *frames.map { |frame| "    #{frame}" }].map { |line| "#{line.b[0, LINE - 1]}\n" }
          end
        end

        # Without the frames of the signal handler, which are of this file.
        def frames(thread)
          frames = thread.backtrace.to_a
          thread == Thread.current ? frames.drop_while { |frame| frame.start_with?(__FILE__) } : frames
        end

        def title(threads)
          first = threads.first
          return "main thread:" if first == Thread.main

          more = " and #{threads.size - 1} more with the same stack" if threads.size > 1
          "#{["thread", first.name&.inspect, "(#{first.status || "dead"})"].compact.join(" ")}#{more}:"
        end

        def fitted(stacks)
          share = share(stacks.map { |lines| bytes(lines) })
          left = LIMIT
          cut = stacks.map { |lines| cut(lines, share) }.take_while { |lines| (left -= bytes(lines)) >= 0 }
          missing = stacks.size - cut.size
          missing.zero? ? cut : [*cut, ["#{missing} more stacks were left out\n"]]
        end

        # What short stacks leave is for the long ones.
        # @return [Integer] bytes of a long one
        def share(sizes)
          left = LIMIT
          sizes.sort.each.with_index do |size, place|
            share = left / (sizes.size - place)
            return [share, LEAST].max if size > share

            left -= size
          end
          LIMIT
        end

        # Leaves out frames in the middle: a stack is known by its title and both ends.
        def cut(lines, share)
          return lines if bytes(lines) <= share

          half = (share - NOTE) / 2
          head = first(lines, half)
          tail = first(lines.reverse, half).reverse
          [*head, "    ... #{lines.size - head.size - tail.size} frames left out ...\n", *tail]
        end

        def first(lines, bytes) = lines.take_while { |line| (bytes -= line.bytesize) >= 0 }
        def bytes(lines) = lines.sum(&:bytesize)
      end
    end
  end
end
