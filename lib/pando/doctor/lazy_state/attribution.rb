# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # Says which of the things that a request did each group of objects belongs to: a file that it loaded, code
      # that it compiled, a method that it defined, or objects that it built.
      #
      # @api private
      class Attribution
        # @param loading [Loading] @param defined [Array<Definitions::Defined>] @param places [Places]
        def initialize(loading, defined, places)
          @loading = loading
          @places = places
          @loads = loading.loads.to_h { |load| [load.place, load] }
          @compiled = loading.compiled.to_h { |one| [one.place, one] }
          @texts = loading.compiled.to_h { |one| [one.path, one] }
          @defined = defined.to_h { |one| [[one.path, one.line], one] }
        end

        # @param group [Group]
        # @return [Loading::Load, Loading::Compiled, Definitions::Defined, nil] nil: objects
        # @return [Symbol] :vm for what is nobody's, as an inline cache
        def of(group)
          return :vm if group.cache?

          @loading.load_of(group.file) || by_loader(group) || by_text(group) || by_method(group) || (:vm if group.code?)
        end

        private

        # The code of a file is made in the loader's frame, for the line that wanted the file; where require is
        # not written in Ruby, in that line's own. What a loader keeps for itself goes with the first load.
        def by_loader(group)
          return @loads[group.place] || @loading.loads.first if @places.loader?(group.file)

          @loads[group.place] if group.vm? && group.place == [group.file, group.line]
        end

        def by_text(group)
          known = @texts[group.file]
          return known if known && (group.code? || !group.file.end_with?(".rb"))

          @compiled[group.place] if group.code?
        end

        def by_method(group)
          known = @defined[[group.file, group.line]] || @defined[group.place]
          known if known && (group.code? || group.name == "Proc" || group.name.is_a?(Symbol))
        end
      end
    end
  end
end
