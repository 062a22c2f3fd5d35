# frozen_string_literal: true

require "pando/yjit"

module Pando
  module Refork
    # What Ruby lets one know and say of full collections, those that look at the whole heap, of this process.
    #
    # @api private
    module MajorGC
      # GC.config, from Ruby 3.4 on; not of each collector that Ruby can be built with.
      POSTPONABLE = GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark)
      # Not of Ruby 3.1.
      FORETOLD = GC.latest_gc_info.key?(:need_major_by)

      class << self
        # @return [String, nil] why Ruby cannot be told to do without; nil: it can
        def obstacle
          "Ruby #{RUBY_VERSION} has no GC.config(rgengc_allow_full_mark:), which takes 3.4 or newer" unless POSTPONABLE
        end

        # @return [Boolean]
        def allowed? = !POSTPONABLE || GC.config[:rgengc_allow_full_mark]

        # GC.start asks nobody: only those that Ruby begins by itself.
        # @param allowed [Boolean]
        # @return [void]
        def allowed=(allowed)
          GC.config(rgengc_allow_full_mark: allowed) if POSTPONABLE
        end

        # @return [Symbol, nil] why the next collection is to be a full one; then GC.start makes it one in any case
        def wanted = (GC.latest_gc_info(:need_major_by) if FORETOLD)

        # @return [Boolean] one writes to all that YJIT knows of the methods that it has compiled
        def dear? = YJIT.enabled?
      end
    end
  end
end
