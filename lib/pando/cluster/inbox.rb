# frozen_string_literal: true

require "pando/cluster/brief"
require "pando/cluster/link"

module Pando
  module Cluster
    # Reads what children report, and believes nothing but the kernel about who
    # they are. Owned by the monitor.
    #
    # @api private
    class Inbox
      include Brief

      # Seconds that a process may live on after its link has ended.
      AFTERLIFE = 5.0

      # @param observer [ChildEvents]
      def initialize(roster, poller, observer)
        @roster = roster
        @poller = poller
        @observer = observer
      end

      # And that its source has to show whether it ends as well: then another one is asked.
      PROMOTION = 1.0
      # And that a mold has to say why it did not carry out an order, which ends the link of whoever it was to fork.
      WORD = 0.25

      # Packets that one child may have read in a row: the others wait.
      BURST = 64

      # Reports that tell nothing new: a cold mold's pid we know from the start, and the
      # reactor's exit status says that it has drained.
      KNOWN = %i[adopted drained].freeze
      THREADS = Message::THREADS.keys.freeze
      private_constant :THREADS

      COUNT = /\A\d{1,9}\z/
      private_constant :COUNT

      # Reports of a child that the observer is told.
      NEWS = %i[checking crashing leaving replacement_reason signalled lane_corrupt tried tried_in_vain lines_lost lines_due
                state_changed reader_lost].freeze

      # Reads what a child has sent.
      def read(child, burst = BURST)
        burst.times do
          return if child.gone? || child.mute

          packet = child.link.receive
          return if packet == :nothing
          return end_of_link(child) if packet == :closed

          packet.descriptors.each { |fd| Sys.close_fd(fd) } # reports carry none
          handle(child, packet)
        end
      rescue Link::Malformed => e
        reject(child, e.message)
      end

      # By the first packet of a forked child, or because it was found without one. Only a child of
      # ours can be adopted.
      def adopt(child, pid)
        return drop(child, "a report without the kernel's word for its sender") unless pid.positive?

        child.adopt(Sys::Pidfd.of_child(pid))
        child.kill(child.verdict) if child.condemned? # there was nobody to send it to then
        @poller.add(child.pidfd, [:exit, child])
        @observer.child_adopted(child)
      rescue Errno::ECHILD, Errno::ESRCH, Errno::EINVAL
        drop(child, "pid #{pid} is no child of the monitor")
      rescue SystemCallError => e # it ends when it finds its link closed
        drop(child, "pid #{pid} could not be adopted: #{e.message}", innocent: true)
      end

      # After an upgrade.
      def watch(child)
        @poller.add(child.link, [:link, child]) unless child.mute
        @poller.add(child.pidfd, [:exit, child])
      end

      private

      def handle(child, packet)
        return adopt(child, packet.sender) if child.ordered?

        objection = objection_to(child, packet)
        return reject(child, objection) if objection

        message = packet.message
        case message.kind
        when *KNOWN then nil
        when :ready then ready(child)
        when :detail then child.add_detail(message.text)
        when :failed then fail(child, message)
        when *NEWS then pass_on(child, message)
        when :fork_failed, :fork_refused, :fork_declined then fork_failed(child, message)
        when *THREADS then @observer.thread_reported(child, message.kind, message.text)
        else reject(child, "an order instead of a report")
        end
      end

      # @return [String, nil] why that is no report of this child
      def objection_to(child, packet)
        return "a report by pid #{packet.sender}" unless packet.sender == child.pid

        # Whoever else ends is told to, or just ends: it would neither be asked for anything again nor be replaced.
        "a #{child.role} that says it leaves" if packet.message.kind == :leaving && !child.worker?
      end

      def pass_on(child, message)
        case message.kind
        when :checking then @observer.child_checking(child, message.text)
        when :crashing then @observer.child_crashing(child)
        when :leaving then @observer.child_leaving(child, message.text)
        when :signalled then @observer.child_signalled(child, message.text)
        when :replacement_wanted then @observer.child_wants_replacement(child, message.text)
        when :lane_corrupt then @observer.lane_corrupt(message.lane)
        when :state_changed then @observer.state_reported(child, message.text)
        when :reader_lost then @observer.reader_lost(child, message.text)
        when :lines_lost, :lines_due then lines_lost(child, message)
        else @observer.canary_tried(child, message.text, failed: message.kind == :tried_in_vain)
        end
      end

      def ready(child)
        return if child.condemned? # it does not know yet
        return reject(child, "ready twice") unless child.starting?

        child.become_ready
        @observer.child_ready(child)
      end

      # Of its log.
      def lines_lost(child, message)
        return reject(child, "no number of lines") unless COUNT.match?(message.text)

        lines = message.text.to_i
        message.kind == :lines_due ? child.lines_due = lines : @observer.lines_lost(lines)
      end

      def fail(child, message)
        child.failure = child.reason = message.text
        child.passing = message.passing?
      end

      # A forker tells of the child that it could not have.
      def fork_failed(forker, message)
        unborn = @roster[message.seat]
        unless unborn&.ordered? && unborn.source == forker
          return if forker.leaving? # what it had been ordered was called off then

          return reject(forker, "a failed fork that was not ordered")
        end

        return @observer.fork_declined(unborn, message.text) if message.kind == :fork_declined

        @observer.fork_failed(unborn, message.text, innocent: message.kind == :fork_failed)
      end

      # Before adoption there is no process to wait for. Afterwards only the
      # pidfd tells of its death: helpers of the child may hold the link open,
      # and a child may close its link and live.
      def end_of_link(child)
        reason = "it ended before it reported" unless child.pidfd
        patience = patience_with(child) or return drop(child, reason)

        child.reason ||= reason
        child.cut_off = child.pidfd.nil?
        @poller.remove(child.link)
        child.deadline = [child.deadline, Sys.now + patience].compact.min
      end

      # @return [Float, nil] nil: nobody has more to say about it
      def patience_with(child)
        return AFTERLIFE if child.pidfd
        return WORD if child.source&.mold? && child.source.ready?

        PROMOTION if child.mold? && child.source&.worker?
      end

      def drop(child, reason, **how)
        child.reason ||= reason
        @observer.child_lost(child, nil, **how)
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
