# frozen_string_literal: true

require "pando/yjit"

module Pando
  module Refork
    # What Ruby tells about major collections of this process, those that mark the whole heap, and what it can be told.
    module MajorGC
      # GC.config, from Ruby 3.4 on, and not with every garbage collector that Ruby can be built with.
      POSTPONABLE = GC.respond_to?(:config) && GC.config.key?(:rgengc_allow_full_mark)
      # Not with Ruby 3.1.
      FORETOLD = GC.latest_gc_info.key?(:need_major_by)

      class << self
        # @return [String, nil] why major collections cannot be deferred; nil: they can
        def obstacle
          "Ruby #{RUBY_VERSION} has no GC.config(rgengc_allow_full_mark:), which takes 3.4 or newer" unless POSTPONABLE
        end

        def allowed? = !POSTPONABLE || GC.config[:rgengc_allow_full_mark]

        # Concerns only collections that Ruby starts by itself, not GC.start.
        def allowed=(allowed)
          GC.config(rgengc_allow_full_mark: allowed) if POSTPONABLE
        end

        # @return [Symbol, nil] why the next collection will be a major one; then GC.start makes it one in any case
        def wanted = (GC.latest_gc_info(:need_major_by) if FORETOLD)

        # Whether GC.start may run a major one: Ruby wants that, or may find so at the end of a sweep, which comes
        # first.
        def possible? = !wanted.nil? || GC.latest_gc_info(:state) != :none

        # Runs a minor collection in any case, while major ones are not allowed. With GC.stress, which knows nothing of
        # what Ruby wants, each new object begins with a collection.
        def minor_only
          return if GC.stress # the application's own

          begin
            GC.stress = 1 # no major ones
            []
          ensure
            GC.stress = false
          end
        end

        # Whether one writes to shared pages: under YJIT, to all its data about compiled methods.
        def unshares? = YJIT.enabled?
      end
    end
  end
end
