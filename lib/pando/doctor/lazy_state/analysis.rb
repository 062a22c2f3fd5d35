# frozen_string_literal: true

require "pando/doctor/lazy_state/code_findings"
require "pando/doctor/lazy_state/holders"
require "pando/doctor/lazy_state/memory_findings"
require "pando/doctor/lazy_state/tables"

module Pando
  module Doctor
    module LazyState
      # Turns the traces of an Observation into findings and tables.
      #
      # @api private
      class Analysis
        # @param groups [Array<Group>]
        # @param addresses [Hash{Integer => Group}] of live objects
        # @param growths [Array<Containers::Growth>]
        def initialize(groups:, addresses:, loading:, places:, defined:, growths:)
          @loading = loading
          @places = places
          @defined = defined
          @growths = growths.select { |growth| growth.steady? || growth.once? }
          attribution = Attribution.new(loading, defined, places)
          @owners = {}.compare_by_identity
          groups.each { |group| (@owners[attribution.of(group)] ||= []) << group }
          @addresses = addresses
        end

        # @return [Array<ForkSafety::Finding>] growth first, then by bytes
        def findings
          @findings ||= (memory.findings + containers + code)
                        .sort_by { |one| [one.kind == :growth_per_request ? 0 : 1, -one.details.fetch(:bytes, 0)] }
        end

        # @return [Hash{Symbol => Object}]
        def figures = Tables.new(@owners, @loading, holders).to_h

        private

        def objects = @owners.fetch(nil, [])
        def memory = @memory ||= MemoryFindings.new(objects, holders)
        def code = CodeFindings.new(@loading, @defined, @owners, @places).findings
        def containers = ContainerFindings.new(@growths, holders, objects).findings

        def holders
          @holders ||= begin
            wanted = @addresses.select { |_, group| group.grows? || group.lazy? }
            @growths.each { |growth| wanted[growth.address] = growth }
            Holders.new(wanted).find
          end
        end
      end

      # Attributes each group of objects to something that a request did: it loaded a file, compiled code, defined a
      # method, or just built objects.
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
        # @return [Symbol] :vm for an inline cache and other objects without a cause
        def of(group)
          return :vm if group.cache?

          @loading.load_of(group.file) || by_loader(group) || by_text(group) || by_method(group) || (:vm if group.code?)
        end

        private

        # The code of a file is allocated in the frame of the loader, or of the requiring line if require is not written
        # in Ruby. Objects that a loader keeps for itself are attributed to the first load.
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
