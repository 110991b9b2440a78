-- oi_ram.vhd: a tensor in memory: words that are read a clock after their address, one write port.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity oi_ram is
  generic (
    depth     : positive;
    width     : positive;
    addr_bits : positive
  );
  port (
    clk   : in  std_logic;
    raddr : in  unsigned(addr_bits - 1 downto 0);
    rdata : out std_logic_vector(width - 1 downto 0) := (others => '0');
    we    : in  std_logic;
    waddr : in  unsigned(addr_bits - 1 downto 0);
    wdata : in  std_logic_vector(width - 1 downto 0)
  );
end entity;

architecture rtl of oi_ram is
  type words_t is array (0 to depth - 1) of std_logic_vector(width - 1 downto 0);
  signal words : words_t := (others => (others => '0'));
  signal found : std_logic_vector(width - 1 downto 0) := (others => '0');
begin
  rdata <= found;

  process (clk)
  begin
    if rising_edge(clk) then
      found <= words(to_integer(raddr));
      if we = '1' then
        words(to_integer(waddr)) <= wdata;
      end if;
    end if;
  end process;
end architecture;

-- A tensor of one element: read like a memory, and at once.
library ieee;
use ieee.std_logic_1164.all;

entity oi_cell is
  generic (
    width : positive
  );
  port (
    clk   : in  std_logic;
    rdata : out std_logic_vector(width - 1 downto 0) := (others => '0');
    we    : in  std_logic;
    wdata : in  std_logic_vector(width - 1 downto 0);
    value : out std_logic_vector(width - 1 downto 0) := (others => '0')
  );
end entity;

architecture rtl of oi_cell is
  signal word  : std_logic_vector(width - 1 downto 0) := (others => '0');
  signal found : std_logic_vector(width - 1 downto 0) := (others => '0');
begin
  rdata <= found;
  value <= word;

  process (clk)
  begin
    if rising_edge(clk) then
      found <= word;
      if we = '1' then
        word <= wdata;
      end if;
    end if;
  end process;
end architecture;
