# frozen_string_literal: true

require "pando/cluster/upgrade/document"

module Support
  # What an object hands to the monitor that takes over, as that one reads it.
  module UpgradeRecord
    # @param object [Pando::Serializable::Methods]
    # @return [Pando::Cluster::Upgrade::Document::Record] for #take_up
    def self.of(object)
      document = Pando::Cluster::Upgrade::Document.new.add("object", **object.serialized_fields)
      Pando::Cluster::Upgrade::Document.parse(document.to_s).one("object")
    end
  end
end
