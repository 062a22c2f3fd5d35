# frozen_string_literal: true

require "test_helper"
require "tmpdir"
require "pando/server"
require "pando/server/node_payload"

# What a mold of job nodes loads, and what is done with its heap.
class NodePayloadTest < Minitest::Test
  # What it asks of a configuration.
  Config = Struct.new(:gc_mold, :given) do
    def default?(_setting) = !given
  end

  def test_it_is_compacted_where_ruby_finds_the_keys_of_a_hash_after_that
    usual = %w[3.1.2 3.3.5 3.3.6 3.3.10 4.0.0].map { |ruby| Pando::Server::NodePayload.usual_preparation(ruby) }

    assert_equal %i[promote promote warmup warmup warmup], usual
  end

  def test_the_user_has_the_last_word
    assert_equal Pando::Server::NodePayload.usual_preparation, prepared_by(Config.new(:promote, false))
    assert_equal :promote, prepared_by(Config.new(:promote, true))
    assert_nil prepared_by(Config.new(nil, true))
  end

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

  def prepared_by(config)
    asked = nil
    payload = Pando::Server::NodePayload.allocate.tap { |one| one.instance_variable_set(:@config, config) }
    Pando::Refork::Preparation.stub(:run, ->(manner) { asked = manner }) { payload.prepare }
    asked
  end
end
