# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/server"
require "pando/server/node_payload"

# What a mold of job nodes loads.
class NodePayloadTest < Minitest::Test
  # It would do as long as the first kind's mold has booted from cold.
  def test_a_shared_kind_says_what_it_would_load_by_itself
    error = assert_raises(Pando::BootError) { payload("node :sidekiq, shared: true").send(:load_application) }

    assert_equal "pando.rb:1: node :sidekiq needs require: with shared: true as well, for when web has been reforked " \
                 "it boots by itself", error.message
    payload("node(:own, name: :sidekiq, shared: true) { :mine }").send(:load_application)
  end

  private

  # @param line [String] beside workers
  def payload(line)
    Dir.mktmpdir do |folder|
      File.write(File.join(folder, "pando.rb"), "#{line}\nworkers 1")
      config = Pando::Config.load(%w[-c pando.rb], env: {}, dir: folder)
      Pando::Server.new(config).payload("sidekiq")
    end
  end
end
