# frozen_string_literal: true

require "pando/doctor/lazy_state/attribution"
require "pando/doctor/lazy_state/code_findings"
require "pando/doctor/lazy_state/container_findings"
require "pando/doctor/lazy_state/holders"
require "pando/doctor/lazy_state/memory_findings"
require "pando/doctor/lazy_state/tables"

module Pando
  module Doctor
    module LazyState
      # Makes findings and tables of what was observed.
      #
      # @api private
      class Judgement
        # @param groups [Array<Group>]
        # @param addresses [Hash{Integer => Group}] objects that are still there
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
    end
  end
end
