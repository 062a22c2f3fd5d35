# frozen_string_literal: true

require "pando/cli/control_command"

# The commands that tell the server to do something, and wait for the result.
module Pando
  module CLI
    # `pando refork [POOL]`: makes a warm worker the next mold, and waits until its canary has passed and every worker
    # comes from it. Without a POOL it does so in each pool.
    class Refork < ControlCommand
      FORCE = Switch.new(name: :force, flags: %w[--force], argument: nil,
                         help: "With `refork`: try even if reforking is suspended or backing off.").freeze

      def self.switches = [*super, FORCE]

      private

      def order = { force: ("yes" if flags[:force]), pool: words.first }
      def operands = %w[POOL]
    end

    # `pando reload`: boots the code that is on disk now, and waits until every worker runs it and Pando has stopped
    # watching it. If no requests come by which it could be judged, or with --now, it does not wait for that.
    class Reload < ControlCommand
      CANCEL = Switch.new(name: :cancel, flags: %w[--cancel], argument: nil,
                          help: "With `reload`: cancel a reload whose configuration is still being read.").freeze
      NOW = Switch.new(name: :now, flags: %w[--now], argument: nil,
                       help: "With `reload`: replace all workers as soon as the first new one has passed its " \
                             "self-test, without a canary trial.").freeze

      def self.switches = [*super, CANCEL, NOW]

      private

      def order = { cancel: ("yes" if flags[:cancel]), now: ("yes" if flags[:now]) }
    end

    # `pando upgrade`: upgrades the monitor to the installed version while all other processes keep running, and waits
    # for the result.
    class Upgrade < ControlCommand; end

    # `pando scale [POOL] N`: waits until N workers are ready and surplus workers are gone. Without a POOL it scales the
    # first pool.
    class Scale < ControlCommand
      private

      # A negative number would look like a flag.
      def flags
        negative = @arguments.grep(/\A-\d+\z/).first
        negative ? refuse(negative) : super
      end

      def order = { workers: workers, pool: (words.first if words.size > 1) }
      def operands = %w[POOL N]

      def workers
        text = words.last or raise UsageError, "give the number of workers: pando scale N"
        text.match?(/\A\d+\z/) ? text.to_i : refuse(text)
      end

      def refuse(text)
        raise UsageError, "pando scale N: must be a whole number, 1 or more, but is #{text.inspect}"
      end
    end

    # `pando kill SLOT [POOL]`: kills a worker at once, with SIGKILL. Another one takes its place. Without a POOL it
    # means the first pool.
    class Kill < ControlCommand
      private

      def order = { slot: slot, pool: words[1] }
      def operands = %w[SLOT POOL]

      def slot
        text = words.first or raise UsageError, "give the slot of the worker: pando #{name} SLOT"
        return text.to_i if text.match?(/\A\d+\z/)

        raise UsageError, "pando #{name} SLOT: must be a whole number, but is #{text.inspect}"
      end
    end

    # `pando stack SLOT [POOL]`: shows where a worker's threads stand now, and lets it go on.
    class Stack < Kill
      private

      def perform
        ControlClient.new(path).ask!("stack", order, timeout: patience) do |_, line|
          terminal.out.puts printable(line["text"])
        end
        CLI::OK
      end
    end

    # `pando drain`: health checks fail from now on. The command waits until no client sends requests any more. `--undo`
    # reverses it.
    class Drain < ControlCommand
      UNDO = Switch.new(name: :undo, flags: %w[--undo],
                        help: "Reverse `drain` (back into rotation) or `quiet` (job nodes take jobs again).").freeze

      def self.switches = [*super, UNDO]

      private

      def order = { undo: flags[:undo] }
    end

    # `pando quiet`: job nodes take no new jobs from now on, as after TSTP. `--undo` reverses it.
    class Quiet < Drain; end

    # `pando stop`: stops the server and waits until it has ended.
    class Stop < ControlCommand
      WAYS = %w[gracefully quickly at_once].freeze
      HOW = Switch.new(name: :how, flags: %w[--how], argument: WAYS.join("|"),
                       type: Types::Choice.new(*WAYS),
                       help: "With `stop`: finish running requests (the default, like TERM), give them the " \
                             "grace of `timeout` (like INT), or cut them off.").freeze

      def self.switches = [*super, HOW]

      private

      def order = { how: flags[:how] || WAYS.first }
    end
  end
end
