# frozen_string_literal: true

require "test_helper"
require "pando/config"
require "pando/server/launch"

# The folders that a cold image is given as its load path.
class ServerLaunchTest < Minitest::Test
  Launch = Pando::Server::Launch

  # @param features [Array<String>] what the process is said to have loaded
  # @return [Array<String>]
  def folders(*features)
    Launch.load_path(features).each_slice(2).map { |flag, folder| flag == "-I" ? folder : flunk(flag) }
  end

  def test_the_folder_of_an_extension_is_the_one_it_is_required_from
    {
      "/src/lib/pando/3.1/pando_ext.so" => "/src/lib",
      "/home/pando/checkout/lib/pando/3.3/pando_ext.so" => "/home/pando/checkout/lib",
      "/pando/pando/pando/4.0/pando_ext.so" => "/pando/pando",
      "/home/pando/gems/extensions/x86_64-linux/3.1.0/pando-1.0/pando/pando_ext.so" =>
        "/home/pando/gems/extensions/x86_64-linux/3.1.0/pando-1.0"
    }.each do |feature, folder|
      assert_equal [Launch::LIBRARY, folder], folders("/usr/lib/ruby/set.rb", feature), feature
    end
  end

  def test_the_admin_process_gets_all_hosts
    hosts = Array.new(100) { |number| "host-#{number}.example.org" }
    config = Pando::Config.load(["--admin", "8081"], env: {}, file: false).with(admin_hosts: hosts)
    _, environment = Launch.admin(config)
    _, settings = Pando::Cluster::Control::Line.decode(environment.fetch("PANDO_ADMIN"))

    assert_equal(["#{config.control}.token", hosts.join(",")], settings.values_at("token", "hosts"))
  end

  def test_a_checkout_is_named_once
    assert_equal [Launch::LIBRARY], folders(File.join(Launch::LIBRARY, "pando/3.1/pando_ext.so"))
  end

  def test_the_extension_of_this_process
    require "pando/native"

    assert_includes folders(*$LOADED_FEATURES), Launch::LIBRARY
    assert(Launch.load_path.each_slice(2).any? { |_, folder| Dir[File.join(folder, "pando/{,*/}pando_ext.so")].any? })
  end
end
