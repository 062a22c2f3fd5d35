# frozen_string_literal: true

require "pando/cluster/link"

module Pando
  module Cluster
    # Reads the reports of children, for ChildEvents. Only the kernel's word counts for a sender. Owned by the monitor.
    class Inbox
      include Brief

      # Seconds that a process may live on after its link has ended.
      LINK_ENDED = 5.0

      # Seconds after which another worker is asked for the mold, if the source has ended as well.
      SOURCE_END = 1.0
      # Seconds that a mold has to report why it did not carry out an order to fork, which ends the new child's link.
      MOLD_REPORT = 0.25

      # Packets read from one child in a row, while the others wait.
      BURST = 64

      # Reports that tell nothing new: a cold mold's pid is known, and a reactor's exit status says that it has drained.
      KNOWN = %i[adopted drained].freeze
      COUNT = /\A\d{1,9}\z/
      THREADS_OF_WORKERS = (1...Sys::Row::JOBS)

      # Reports that are a text and nothing else, and the method of ChildEvents that takes it.
      TEXTS = { checking: :child_checking, signalled: :child_signalled, replacement_wanted: :child_wants_replacement,
                state_changed: :state_reported, reader_lost: :reader_lost, pages_failed: :pages_failed,
                slow: :request_slow, slow_over: :slow_request_over }.freeze
      # Others, and the method of the child that keeps it.
      KEPT = { detail: :add_detail, stack: :add_stacks }.freeze
      private_constant :KNOWN, :COUNT, :THREADS_OF_WORKERS, :TEXTS, :KEPT

      def initialize(roster, poller, pools, control)
        @roster = roster
        @poller = poller
        @pools = pools
        @control = control
      end

      def read(child, burst = BURST)
        burst.times do
          return if child.gone? || child.mute

          packet = child.link.receive
          return if packet == :nothing
          return end_of_link(child) if packet == :closed

          next welcome(child, packet.descriptors.first) if question?(child, packet)

          packet.descriptors.each { |fd| Sys.close_fd(fd) } # other reports carry none
          handle(child, packet)
        end
      rescue Link::Malformed => e
        reject(child, e.message)
      end

      # For a forked child's first packet, or if it was found without one. Only the monitor's children can be adopted.
      def adopt(child, pid)
        return drop(child, "a report without the kernel's word for its sender") unless pid.positive?

        child.adopt(Sys::Pidfd.of_child(pid))
        child.kill(child.verdict) if child.condemned? # there was no process to signal then
        @poller.add(child.pidfd, [:exit, child])
        @pools.tell(child, :child_adopted)
      rescue Errno::ECHILD, Errno::ESRCH, Errno::EINVAL
        drop(child, "pid #{pid} is no child of the monitor")
      rescue SystemCallError => e # the process ends when it finds its link closed
        drop(child, "pid #{pid} could not be adopted: #{e.message}", innocent: true)
      end

      # Adopts a child that was forked to order and has not reported. It is known by its end of the link, which only it
      # and its forker have.
      # @return [Boolean] whether there is such a process, where the kernel tells
      def adopt_unreported(child)
        pid = (children - @roster.filter_map(&:pid)).find { |one| holds?(one, "socket:[#{child.link_inode}]") }
        adopt(child, pid) if pid
        !pid.nil?
      end

      # After an upgrade.
      def watch(child)
        @poller.add(child.link, [:link, child]) unless child.mute
        @poller.add(child.pidfd, [:exit, child])
      end

      private

      # A service has a question for the monitor, and sends one end of a pair of sockets.
      def question?(child, packet)
        packet.message.kind == :client && child.service? && packet.sender == child.pid &&
          (packet.descriptors.one? || packet.stripped)
      end

      # @param descriptor [Integer, nil] nil: the monitor has no room for it. The service finds its own end closed
      def welcome(service, descriptor)
        return unless descriptor

        socket = Sys.take_socket(descriptor) or return reject(service, "a question without a socket")
        @control.welcome(socket, service)
      end

      def handle(child, packet)
        return adopt(child, packet.sender) if child.ordered?

        return reject(child, "a report by pid #{packet.sender}") unless packet.sender == child.pid

        message = packet.message
        return if KNOWN.include?(message.kind)
        return child.public_send(KEPT[message.kind], message.text) if KEPT.key?(message.kind)

        text_method = TEXTS[message.kind]
        text_method ? @pools.tell(child, text_method, message.text) : handle_other(child, message)
      end

      def handle_other(child, message)
        kind = message.kind
        case kind
        when :ready then ready(child, message)
        when :failed then fail(child, message)
        when :crashing then @pools.tell(child, :child_crashing)
        when :tried, :tried_in_vain then @pools.tell(child, :canary_tried, message.text, failed: kind == :tried_in_vain)
        when :lane_corrupt then @pools.tell(child, :lane_corrupt, message.lane)
        when :lines_lost then lines_lost(child, message)
        when :fork_failed, :fork_refused, :fork_declined then fork_failed(child, message)
        when *Message::THREADS.keys then @pools.tell(child, :thread_reported, kind, message.text)
        else reject(child, "an order instead of a report")
        end
      end

      def ready(child, message)
        return if child.condemned? # it was killed and does not know yet
        return reject(child, "ready twice") unless child.starting?
        return reject(child, "no number of threads") unless !child.mold? || takes_threads?(child, message.text.to_i)

        child.become_ready
        @pools.tell(child, :child_ready)
      end

      def takes_threads?(mold, count)
        return false unless THREADS_OF_WORKERS.include?(count)

        mold.threads = count
      end

      def lines_lost(child, message)
        return reject(child, "no number of lines") unless COUNT.match?(message.text)

        @pools.tell(child, :lines_lost, message.text.to_i)
      end

      def fail(child, message)
        child.failure = child.reason = message.text
        child.passing = message.passing?
      end

      # A forker reports a child that it could not fork.
      def fork_failed(forker, message)
        unborn = @roster[message.seat]
        unless unborn&.ordered? && unborn.source == forker
          return if forker.leaving? || forker.fork_reported(message.seat) # its orders were called off

          return reject(forker, "a failed fork that was not ordered")
        end

        pass_on_failed_fork(unborn, message)
        forker.fork_reported(message.seat) # the roster has taken the order for one without a report
      end

      def pass_on_failed_fork(unborn, message)
        return @pools.tell(unborn, :fork_declined, message.text) if message.kind == :fork_declined

        @pools.tell(unborn, :fork_failed, message.text, innocent: message.kind == :fork_failed)
      end

      # Before adoption there is no process to wait for. Afterwards only the pidfd tells that it is dead: helpers of the
      # child may hold the link open, and a child may close its link and live.
      def end_of_link(child)
        reason = "it ended before it reported" unless child.pidfd
        patience = patience_with(child) or return drop(child, reason)

        child.reason ||= reason
        child.cut_off = child.pidfd.nil?
        @poller.remove(child.link)
        child.deadline = [child.deadline, Sys.now + patience].compact.min
      end

      # @return [Float, nil] nil: no other process will report on it
      def patience_with(child)
        return LINK_ENDED if child.pidfd
        return MOLD_REPORT if child.source&.mold? && child.source.ready?

        SOURCE_END if child.mold? && child.source&.worker?
      end

      # As subreaper the monitor is the parent of all of them.
      def children
        File.read("/proc/self/task/#{Process.pid}/children").split.map(&:to_i)
      rescue SystemCallError
        [] # the kernel does not tell
      end

      def holds?(pid, name)
        Dir.each_child("/proc/#{pid}/fd").any? { |fd| link_target("/proc/#{pid}/fd/#{fd}") == name }
      rescue SystemCallError
        false # it has just ended
      end

      def link_target(path)
        File.readlink(path)
      rescue SystemCallError
        nil # it was closed meanwhile
      end

      def drop(child, reason, **how)
        child.reason ||= reason
        @pools.tell(child, :child_lost, nil, **how)
      end

      def reject(child, what)
        Events.emit("link.malformed", role: child.role, **child.identity, reason: what)
        return drop(child, "it broke the protocol: #{what}") unless child.pidfd

        child.mute = true
        @poller.remove(child.link)
        child.kill("it broke the protocol: #{what}")
      end
    end
  end
end
