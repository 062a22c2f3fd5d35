# frozen_string_literal: true

module Pando
  module ForkSafety
    module Callbacks
      # Runs before Ruby's own fork. Kernel#fork, Process.fork and IO.popen("-") call _fork.
      # Process.daemon does not, and ends the parent within the C library. A command (spawn,
      # system, backticks) does not copy this process and calls neither.
      #
      # @api private
      module ForkHook
        def _fork = Callbacks.around(:fork) { super }
        def daemon(*) = Callbacks.around(:daemon) { super }

        Process.singleton_class.prepend(self)
      end
    end
  end
end
