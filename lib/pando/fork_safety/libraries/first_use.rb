# frozen_string_literal: true

require "pando/fork_safety/libraries/constants"
require "pando/fork_safety/status"

module Pando
  module ForkSafety
    module Libraries
      # Notices the first call of a method, after which this process must not be forked.
      #
      # @api private
      module FirstUse
        @watched = {}

        class << self
          # @param mark [Library::Mark]
          # @return [Boolean]
          def watched?(mark) = @watched.key?(mark)

          # @param mark [Library::Mark]
          # @param library [String] the library's name, for the reason
          # @return [nil]
          def watch(mark, library)
            owner = Constants.find(mark.constant) or return
            owner = owner.singleton_class if mark.singleton
            return if @watched[mark] || !defines?(owner, mark.method_name)

            @watched[mark] = true
            owner.prepend(watcher(mark.method_name, "#{library}: #{mark.reason}"))
            nil
          end

          private

          def defines?(owner, name) = owner.method_defined?(name) || owner.private_method_defined?(name)

          def watcher(name, reason)
            told = false
            Module.new do
              define_method(name) do |*arguments, &block|
                unless told
                  told = true
                  ForkSafety.give_up(reason)
                end
                super(*arguments, &block)
              end
              ruby2_keywords(name)
            end
          end
        end
      end
    end
  end
end
