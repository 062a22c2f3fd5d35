# frozen_string_literal: true

require "pando/cluster/start"
require "pando/cluster/upgrade/signal_buffer"
require "pando/cluster/upgrade/state"

module Pando
  module Cluster
    class Upgrade
      # Restores what another image of the same process has owned, from the state that it has left. A kind of Start.
      #
      # Whatever fails before the monitor's first turn, the process can go back to the former image: the state and all
      # descriptors are as that image left them. Owned by the new monitor, until it has begun.
      class Resumption
        # Says in the environment that there is a state: `take:NUMBER` of its descriptor, or `back:NUMBER` if
        # the process goes back to the image that wrote the state.
        VARIABLE = "PANDO_UPGRADE"
        # Why the former image runs again.
        REASON = "PANDO_UPGRADE_REASON"

        def self.from(text, reason)
          manner, number = text.match(/\A(take|back):(\d{1,9})\z/)&.captures
          raise UsageError, "#{VARIABLE} is for the pando monitor only" unless manner

          new(Integer(number, 10), manner == "back" ? reason.to_s : nil)
        end

        # Executes the image again that wrote the state.
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
          # @return [Signals, nil] that have come since the monitor has handlers of its own
          attr_writer :signals
        end

        def initialize(number, refusal)
          @number = number
          @refusal = refusal
          @file = IO.for_fd(number, autoclose: false)
          # Objects that are dropped half made must not close what the former image needs.
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
        def open_files = @state.open_files
        def inherited_sockets = @inherited_sockets ||= Listening::Inherited.taken_up(@state, ENV)

        def listeners(specs)
          compare(:listen, "listener", specs)
          Listening::Listeners.new(inherited_sockets).take_up(@state, specs)
        end

        def roster = Roster.new(Sys::Scoreboard.attach(take(@state.one("scoreboard").integer(:descriptor))))
        def systemd = Systemd.taken_up(@state)

        def control(cluster, spec, poller)
          compare(:control, "control", [spec].compact)
          Control.new(cluster, poller).take_up(@state, spec)
        end

        def admin(control, spec, poller)
          compare(:admin, AdminSupervisor::LISTENER, spec.to_a.first.to_a)
          AdminSupervisor.new(control, poller).take_up(@state, spec)
        end

        # @return [Object, nil] in the mode that the workers were started in
        def reactor(payload)
          record = @state.any("channel")
          payload.reactor(record.integers(:descriptors).map { |number| take(number) }) if record
        end

        def begin(monitor)
          take_up(monitor)
          @state.close_rest
          monitor.pools.boot(monitor.pools.reject { |pool| @state.part_of(pool.name) })
          @file.autoclose = true
          @file.close
          GC.enable
          tell(monitor.payload.kept)
          monitor.reaper.reap_orphans # children may have died between the two images
        end

        # The server was ready when it started, see Start#proceed.
        def proceed(_monitor); end

        private

        def take(number) = @state.take(number)

        # Notes a setting if the configuration in the folder wants other sockets than those that are open.
        def compare(setting, word, specs)
          open = @state.all(word).map { |record| record.text(:spec) }
          changed << setting unless open.uniq.sort == specs.map(&:to_s).uniq.sort
        end

        def changed = @changed ||= []

        def take_up(monitor)
          @state.meet(monitor.pools.names)
          State::OWNERS.each { |name| monitor.public_send(name).from_state(@state) }
          monitor.roster.each { |child| monitor.inbox.watch(child) }
        end

        # @param kept [Array<String>] settings that need a restart
        def tell(kept)
          settings, restart = [changed, kept].map { |names| names.join(", ") if names.any? }
          Events.emit("upgrade.incomplete", settings: settings, restart: restart) if settings || restart
          return Events.emit("upgrade.failed", from: @state.version, reason: @refusal) if @refusal

          Events.emit("monitor.upgraded", from: @state.version, to: Pando::VERSION, pid: Process.pid,
                                          seconds: (Sys.now - @state.upgraded_at).round(3))
        end
      end

      # Tries in a child of the monitor whether another image could take over: reads the state and builds a monitor
      # from it, with sockets of its own in place of all that it must not touch. Reports to the monitor (Probe) the
      # outcome, and what it was executed as.
      class Rehearsal < Resumption
        # The value of VARIABLE.
        VALUE = "probe"
        # Its descriptors, from the Probe of any version: the state, the report, the memory that the processes share.
        STATE = 3
        REPORT = 4
        MEMORIES = 5

        def initialize # rubocop:disable Lint/MissingSuper
          stand_ins = StandIns.new
          @state = Sys.borrow(STATE) { |file| State.read(file, stand_ins) }
          @state.memories.each_with_index { |number, place| stand_ins.real[number] = MEMORIES + place }
        end

        def rehearsal? = true

        # Signals are the monitor's.
        def take_charge(_signals); end

        def begin(monitor) = take_up(monitor)

        # @return never
        # @raise [Exception] it could not take over
        def self.perform
          image = ProcessImage.current
          yield new
          tell("ready", version: Pando::VERSION, protocol: PROTOCOL) { |report| image.to_state(report) }
        end

        # @return never
        def self.fail(reason) = tell("failed", reason: reason)

        def self.tell(word, **fields)
          report = Document.new.add(word, **fields)
          yield report if block_given?
          IO.for_fd(REPORT, "w").tap { |io| io.sync = true }.write(report.to_s)
          exit!(0)
        end
        private_class_method :tell
      end

      # The arguments and the environment that a process was executed with.
      class ProcessImage
        include Brief

        attr_reader :arguments, :variables

        # The image of this process, which must not have set its title yet.
        def self.current
          arguments, variables = %w[cmdline environ].map { |name| File.binread("/proc/self/#{name}").split("\0", -1) }
          new(arguments[0..-2], variables.map { |text| text.split("=", 2) }.select { |pair| pair.size == 2 }.to_h)
        end

        def self.from_state(document)
          new(document.all("argument").map { |record| record.bytes(:value) },
              document.all("variable").to_h { |record| [record.bytes(:name), record.bytes(:value)] })
        end

        def initialize(arguments, variables)
          @arguments = arguments
          @variables = variables
        end

        def to_state(state)
          arguments.each { |value| state.add("argument", value: value) }
          variables.each { |name, value| state.add("variable", name: name, value: value) }
        end

        # Executes this image in the current process.
        # @raise [SystemCallError] the kernel cannot execute it
        def execute(more)
          program, *rest = arguments
          exec(variables.merge(more).compact, [program, program], *rest, unsetenv_others: true, close_others: false)
        end
      end
    end
  end
end
