# frozen_string_literal: true

require "pando/cluster/start"
require "pando/cluster/upgrade/process_image"
require "pando/cluster/upgrade/signal_buffer"
require "pando/cluster/upgrade/state"

module Pando
  module Cluster
    class Upgrade
      # How a monitor comes by what it owns when another image of the same process has owned it: from the state
      # that this has left. Answers as Start does.
      #
      # Whatever fails before the monitor's first turn, the former image can be gone back to: the state and all
      # descriptors are as it left them.
      #
      # @api private
      class Resumption
        # Says in the environment that there is a state: `take:NUMBER` of its descriptor, or `back:NUMBER` in an
        # image that is gone back to.
        VARIABLE = "PANDO_UPGRADE"
        # Why the former image runs again.
        REASON = "PANDO_UPGRADE_REASON"

        # @param text [String] of VARIABLE
        # @param reason [String, nil] of REASON
        # @raise [UsageError] it is none of ours
        def self.from(text, reason)
          manner, number = text.match(/\A(take|back):(\d{1,9})\z/)&.captures
          raise UsageError, "#{VARIABLE} is for the pando monitor only" unless manner

          new(Integer(number, 10), manner == "back" ? reason.to_s : nil)
        end

        # The image that the state is from goes on with it.
        # @param text [String] of VARIABLE
        # @param reason [String]
        # @return [nil] there is none, as far as can be seen
        def self.go_back(text, reason)
          number = text[/\Atake:(\d{1,9})\z/, 1].to_i
          document = Document.parse(Sys.borrow(number) { |file| file.pread(Document::LIMIT, 0) })
          return unless document.one("monitor").integer(:pid) == Process.pid

          Descriptors.close_on_exec([number, *document.one("descriptors").integers(:numbers)], false)
          ProcessImage.from_state(document).execute(VARIABLE => "back:#{number}", REASON => reason,
                                             **SignalBuffer.pass_on([*@signals&.take]))
        rescue SystemCallError, Unreadable
          nil
        end

        class << self
          # @return [Signals, nil] where those are that have come since they are the monitor's again
          attr_writer :signals
        end

        # @param number [Integer] of the descriptor
        # @param refusal [String, nil] why another image could not take over
        def initialize(number, refusal)
          @number = number
          @refusal = refusal
          @file = IO.for_fd(number, autoclose: false)
          # What is given up half made must not close what the former image needs.
          GC.disable
          @state = State.read(@file, Descriptors.new)
          raise UsageError, "#{VARIABLE} is of another process" unless @state.pid == Process.pid
        rescue Errno::EBADF
          raise UsageError, "#{VARIABLE} is for the pando monitor only"
        end

        def rehearsal? = false
        def fresh? = false

        # The process is what it was, but its signals are only remembered until now.
        def take_charge(signals)
          Resumption.signals = signals
          signals.trap_all
          signals.remember(SignalBuffer.take)
          Process.setproctitle(Monitor::TITLE)
        end

        def began_at = @state.began_at
        def inherited_sockets = @inherited_sockets ||= Listening::Inherited.taken_up(@state, ENV)

        def listeners(specs)
          compare(:listen, "listener", specs)
          Listening::Listeners.taken_up(@state, specs, inherited_sockets)
        end

        def roster = Roster.new(scoreboard)
        def systemd = Systemd.taken_up(@state)

        def control(cluster, spec, poller)
          compare(:control, "control", [spec].compact)
          Control.taken_up(@state, cluster, spec, poller)
        end

        # @return [Object, nil] in the mode that the workers were begun in
        def reactor(payload)
          record = @state.any("channel")
          payload.reactor(record.integers(:descriptors).map { |number| take(number) }) if record
        end

        # @param monitor [Monitor] all of which is built
        def begin(monitor)
          take_up(monitor)
          @state.close_rest
          monitor.pools.boot(monitor.pools.reject { |pool| @state.part_of(pool.name) })
          @file.autoclose = true
          @file.close
          GC.enable
          tell_changed
          tell
          monitor.reaper.bury_strangers # nobody has told us of those who died meanwhile
        end

        # The server was ready when it started, see Start#proceed.
        def proceed(_monitor); end

        private

        def take(number) = @state.take(number)

        # Whether the configuration in the folder wants other sockets than those that are open.
        def compare(setting, word, specs)
          open = @state.all(word).map { |record| record.text(:spec) }
          changed << setting unless open.uniq.sort == specs.map(&:to_s).uniq.sort
        end

        def changed = @changed ||= []

        def tell_changed
          Events.emit("upgrade.incomplete", settings: changed.join(", ")) if changed.any?
        end

        def scoreboard = Sys::Scoreboard.attach(take(@state.one("scoreboard").integer(:descriptor)))

        def take_up(monitor)
          @state.meet(monitor.pools.names)
          State::OWNERS.each { |name| monitor.public_send(name).from_state(@state) }
          monitor.roster.each { |child| monitor.inbox.watch(child) }
        end

        def tell
          return Events.emit("upgrade.failed", from: @state.version, reason: @refusal) if @refusal

          Events.emit("monitor.upgraded", from: @state.version, to: Pando::VERSION, pid: Process.pid,
                                          seconds: (Sys.now - @state.upgraded_at).round(3))
        end
      end
    end
  end
end
