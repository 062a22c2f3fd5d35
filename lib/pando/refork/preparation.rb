# frozen_string_literal: true

module Pando
  module Refork
    # What is done with the heap of a mold before it forks: once, and not in each of its workers, where it would make
    # shared pages private.
    #
    # @api private
    module Preparation
      # Collections that an object survives before it counts as old.
      AGES = 3

      # @param manner [:promote, :warmup, nil] the `gc mold:` setting
      # @return [nil]
      def self.run(manner)
        case manner
        when :warmup then Process.respond_to?(:warmup) ? Process.warmup : promote
        when :promote then promote
        end
        nil
      end

      # A full one for all that is garbage; the others need not look at what is old already.
      # @return [void]
      def self.promote = AGES.times { |time| GC.start(full_mark: time.zero?) }
      private_class_method :promote
    end
  end
end
