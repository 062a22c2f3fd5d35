# frozen_string_literal: true

require "pando/cluster"
require "pando/cluster/listening/addresses"
require "pando/cluster/assembly"
require "pando/cluster/brief"
require "pando/cluster/control"
require "pando/cluster/drain"
require "pando/cluster/examiner"
require "pando/cluster/inbox"
require "pando/cluster/listening/listeners"
require "pando/cluster/memory/gauge"
require "pando/cluster/memory/oom_watch"
require "pando/cluster/memory/relief"
require "pando/cluster/memory/shortage"
require "pando/cluster/pid_file"
require "pando/cluster/pools"
require "pando/cluster/quiet"
require "pando/cluster/reaper"
require "pando/cluster/reload"
require "pando/cluster/restart_file"
require "pando/cluster/roster"
require "pando/cluster/shutdown"
require "pando/cluster/signal_orders"
require "pando/cluster/signals"
require "pando/cluster/systemd"
require "pando/cluster/tally"
require "pando/cluster/terminal"
require "pando/cluster/turn_watch"
require "pando/cluster/start"
require "pando/cluster/upgrade"

module Pando
  module Cluster
    # The first process and the last one: owns listeners, links and the
    # scoreboard, starts and watches all others, and never loads the
    # application. One thread, one loop: wait, hear, bury, enforce, reconcile.
    class Monitor
      include Brief
      extend Forwardable
      include Assembly

      TITLE = "pando monitor"
      # Seconds that it waits when the kernel has no memory or descriptor for it.
      STARVED = 0.25
      # Seconds that whoever reads stderr has at the end.
      LAST_WORDS = 0.5

      attr_reader :listeners, :roster, :pools, :shutdown, :reload, :inbox, :examiner, :drain, :tally, :reaper, :systemd,
                  :control, :upgrade, :quiet, :began_at, :payload

      # Of the first pool, which is the only one of most servers.
      def_delegators :first_pool, :generations, :rollout, :reactors, :lanes

      # @param payload [Payload] for its options and hooks, and for its companions; its application is never loaded here
      # @param specs [Array] see Listening::Listeners.open
      # @param policy [#threshold, #manual?, #choose] when to refork and from whom
      # @param command [Array<String>] what becomes the mold of a cold boot
      # @param start [Start, Upgrade::Resumption]
      def initialize(payload, specs, policy, command, start = Start.new)
        @payload = payload
        @specs = specs
        @policy = policy
        @command = command
        @start = start
        @image = Upgrade::ProcessImage.current
      end

      # Up to where it serves.
      # @return [self]
      # @raise [BootError] an address cannot be listened on
      def prepare
        set_up
        @start.begin(self)
        self
      rescue BootError
        close
        raise
      end

      # Serves until told to stop.
      # @return [Integer] exit status: 0 after a wanted stop, 1 when nothing could be served
      def run
        run_ready_hook
        until shutdown.complete?
          turn
          upgrade.proceed
        end
        tear_down
      ensure
        close
      end

      # @return [Float] seconds since the start
      def age = Sys.now - @began_at

      # @return [Boolean] whether every worker of every pool is ready, and the reactor, if there is one
      def complete? = pools.complete? && !reactors.heard_at(Sys.now).nil?

      # @return [Boolean] whether the server stops, now or after its `drain_delay`
      def ending? = shutdown.begun? || drain.stop?

      # @api private
      def dismiss(child)
        @poller.remove(child.link) unless child.link.closed?
        @poller.remove(child.pidfd) if child.pidfd
        roster.dismiss(child)
      end

      private

      def close
        reload&.abandon
        @listeners&.close
        @control&.close
        @pid_file&.release
      end

      def set_up
        @tally = Tally.new
        @companions = @payload.companions
        @signals = Signals.new(quiet: quieted_by_signal?)
        @start.take_charge(@signals)
        @began_at = @start.began_at
        @pid_file = PidFile.new((@payload.options.pidfile unless @start.rehearsal?)).claim
        @restart_file = RestartFile.new(@payload.options)
        @listeners = @start.listeners(@specs)
        @systemd = @start.systemd
        @turns = TurnWatch.new
        @poller = Sys::Poller.new
        @poller.add(@signals, [:signal, nil])
        @control = @start.control(self, @payload.options.control, @poller)
        build
      end

      # A terminal's ^Z is to suspend a server that serves requests, as it does everybody.
      def quieted_by_signal?
        return true if @payload.options.jobs

        @companions.any? { |plan| plan.payload.options.jobs } && !Terminal.there?
      end

      def run_ready_hook
        @payload.run_hook(:after_monitor_ready)
      rescue HookError => e
        Events.emit("hook.failed", hook: :after_monitor_ready, reason: e.message)
      end

      # What the kernel refuses us in the midst of it is tried again with the next turn, a little later: we end
      # for nothing that passes.
      def turn
        take_turn
      rescue Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, NoMemoryError => e
        Events.emit("monitor.starved", reason: "#{e.message} (#{e.backtrace&.first})")
        sleep(STARVED)
      end

      def take_turn
        Events.proceed
        hear(wait)
        pools.enforce
        shutdown.begun? ? shutdown.proceed : reconcile
        reactors.reconcile(shutdown.begun?)
        drain.proceed
        @control.proceed
        @systemd.reconcile { status_line }
      end

      def wait
        asked = [due - Sys.now, 0].max
        @poller.wait(asked).tap { pools.postpone(@turns.turned(asked)) }
      end

      def status_line = "#{pools.summary}#{", draining" if drain.begun?}"

      def due
        always = [pools.deadline, *[@systemd, reactors, drain, @orders].filter_map(&:due)].min
        return always if shutdown.begun? # nobody else is asked

        [always, *[pools, examiner, reload, upgrade, @restart_file].filter_map(&:due)].min
      end

      # Links before pidfds: a dead process's last words come first. Signals before
      # pidfds: what shall end us may have been sent to the children as well, and
      # then their death is no failure. One may be newer than the list of the ready.
      def hear(ready)
        signals = @signals.take.uniq
        children(ready, :link).each { |child| read(child) }
        (signals - ["CHLD"]).each { |name| @orders.obey(name) }
        @orders.proceed
        children(ready, :exit).each { |child| @reaper.bury(child) }
        children(ready, :control).each { |session| @control.hear(session) }
        examiner.proceed
        reload.attend
        upgrade.hear
        @reaper.bury_strangers if signals.include?("CHLD")
      end

      def read(child) = pools.about(pools.of(child)) { @inbox.read(child) }

      def children(ready, what) = ready.filter_map { |subject, child| child if subject == what }

      def reconcile
        return if upgrade.holds?

        @restart_file.proceed { |path| reload.request("#{path} was touched") }
        reload.reconcile # first: a mold that is booted anew is to be of the release that serves
        pools.reconcile(ending?)
        quiet.reconcile(ending?)
        @start.proceed(self)
      end

      # Another release serves: its settings are ours from now on.
      def renew(renewal) = pools.renew(renewal)

      def first_pool = pools.first

      def tear_down
        @signals.release
        Events.emit("monitor.stopped", pid: Process.pid, status: shutdown.status)
        @systemd.close
        Events.proceed(LAST_WORDS)
        shutdown.tell_failure(LAST_WORDS)
        shutdown.status
      end
    end
  end
end
