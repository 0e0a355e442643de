"""Small files in the formats of other programs, written for these tests."""

DISKSPD = """<Results>
<System><ComputerName>PC</ComputerName><Tool><Version>2.1.0</Version></Tool></System>
<TimeSpan>
<TestTimeSeconds>10.00</TestTimeSeconds>
<ThreadCount>2</ThreadCount>
<Latency>
<AverageReadMilliseconds>0.250</AverageReadMilliseconds>
<AverageWriteMilliseconds>0.500</AverageWriteMilliseconds>
<Bucket><Percentile>50</Percentile><ReadMilliseconds>0.200</ReadMilliseconds>
<WriteMilliseconds>0.400</WriteMilliseconds></Bucket>
<Bucket><Percentile>99.9</Percentile><ReadMilliseconds>2.000</ReadMilliseconds>
<WriteMilliseconds>4.000</WriteMilliseconds></Bucket>
</Latency>
<Thread><Id>0</Id><Target><Path>a</Path><ReadBytes>40960000</ReadBytes>
<ReadCount>10000</ReadCount><WriteBytes>4096000</WriteBytes><WriteCount>1000</WriteCount>
</Target></Thread>
<Thread><Id>1</Id><Target><Path>a</Path><ReadBytes>40960000</ReadBytes>
<ReadCount>10000</ReadCount><WriteBytes>0</WriteBytes><WriteCount>0</WriteCount>
</Target></Thread>
</TimeSpan>
</Results>
"""

ELBENCHO = """ISO date,label,operation,time ms [first],time ms [last],IOPS [first],IOPS [last],\
MiB/s [first],MiB/s [last],MiB [first],MiB [last],IO lat us [min],IO lat us [avg],\
IO lat us [max],version
2026-01-02T03:04:05,a,WRITE,1000,2000,2000,1500,7,5,8,11,50,640,9000,3.0-1
2026-01-02T03:04:09,a,READ,500,1000,9000,8000,35,31,16,31,40,120,800,3.0-1
2026-01-02T03:04:11,a,RMFILES,1,1,,,,,,,,,,3.0-1
"""

IOSTAT = """{"sysstat": {"hosts": [{"nodename": "pc", "statistics": [
 {"avg-cpu": {"user": 1.0}, "disk": [{"disk_device": "sda", "r/s": 900.0, "w/s": 1.0,
  "rkB/s": 9.0, "wkB/s": 4.0, "r_await": 9.0, "w_await": 9.0, "aqu-sz": 9.0, "util": 99.0}]},
 {"disk": [{"disk_device": "sda", "r/s": 100.0, "w/s": 0.0, "rkB/s": 400.0, "wkB/s": 0.0,
  "r_await": 1.0, "w_await": 0.0, "aqu-sz": 0.1, "util": 10.0}]},
 {"disk": [{"disk_device": "sda", "r/s": 300.0, "w/s": 10.0, "rkB/s": 1200.0, "wkB/s": 80.0,
  "r_await": 2.0, "w_await": 5.0, "aqu-sz": 0.7, "util": 30.0}]}]}]}}
"""

SMART = """{{"critical_warning": 0, "temperature": 310, "data_units_read": 1000,
 "data_units_written": {written}, "host_read_commands": 20, "host_write_commands": "1,000",
 "power_on_hours": 5}}"""
OCP = '{{"Physical media units written": {{"hi": 0, "lo": {media}}}, "Log page version": 3}}'

MQSIM = """<?xml version="1.0" encoding="us-ascii"?>
<Execution_Parameter_Set><Host_Parameter_Set>
<PCIe_Lane_Bandwidth>1.0</PCIe_Lane_Bandwidth><PCIe_Lane_Count>4</PCIe_Lane_Count>
</Host_Parameter_Set><Device_Parameter_Set>
<HostInterface_Type>NVME</HostInterface_Type><Caching_Mechanism>SIMPLE</Caching_Mechanism>
<Ideal_Mapping_Table>true</Ideal_Mapping_Table>
<Plane_Allocation_Scheme>CWDP</Plane_Allocation_Scheme>
<Overprovisioning_Ratio>0.25</Overprovisioning_Ratio>
<GC_Exec_Threshold>0.05</GC_Exec_Threshold><CMT_Capacity>2097152</CMT_Capacity>
<GC_Block_Selection_Policy>RGA</GC_Block_Selection_Policy>
<Flash_Channel_Count>2</Flash_Channel_Count><Flash_Channel_Width>1</Flash_Channel_Width>
<Channel_Transfer_Rate>333</Channel_Transfer_Rate>
<Chip_No_Per_Channel>2</Chip_No_Per_Channel>
<Flash_Parameter_Set><Flash_Technology>MLC</Flash_Technology>
<CMD_Suspension_Support>ERASE</CMD_Suspension_Support>
<Page_Read_Latency_LSB>40000</Page_Read_Latency_LSB>
<Page_Read_Latency_CSB>45000</Page_Read_Latency_CSB>
<Page_Read_Latency_MSB>50000</Page_Read_Latency_MSB>
<Page_Program_Latency_LSB>400000</Page_Program_Latency_LSB>
<Page_Program_Latency_CSB>600000</Page_Program_Latency_CSB>
<Page_Program_Latency_MSB>900000</Page_Program_Latency_MSB>
<Block_Erase_Latency>3000000</Block_Erase_Latency><Suspend_Erase_Time>70000</Suspend_Erase_Time>
<Die_No_Per_Chip>1</Die_No_Per_Chip><Plane_No_Per_Die>1</Plane_No_Per_Die>
<Block_No_Per_Plane>128</Block_No_Per_Plane><Page_No_Per_Block>64</Page_No_Per_Block>
<Page_Capacity>8192</Page_Capacity>
</Flash_Parameter_Set></Device_Parameter_Set></Execution_Parameter_Set>
"""

FEMU = """#!/bin/bash
# a drive in a virtual machine
read_ns=30000
size=192   # in MB
OPTIONS="-device femu"
OPTIONS=${OPTIONS}",devsz_mb=${size},femu_mode=1"
OPTIONS=${OPTIONS}",blks_per_pl=64,luns_per_ch=2,nchs=2,pg_rd_lat=${read_ns}"
qemu-system-x86_64 -m 4G ${OPTIONS} -nographic
"""

NVMEVIRT = """#define SSD_TYPE_CONV 1
#define CELL_MODE_MLC 2
#if (BASE_SSD == SMALL)
#define NS_SSD_TYPE_0 SSD_TYPE_CONV
#define CELL_MODE (CELL_MODE_MLC)
#define SSD_PARTITIONS (2)
#define NAND_CHANNELS (4)
#define LUNS_PER_NAND_CH (2)
#define PLNS_PER_LUN (1)
#define FLASH_PAGE_SIZE KB(16)
#if 0
#define ONESHOT_PAGE_SIZE (FLASH_PAGE_SIZE * 3)
#else
#define ONESHOT_PAGE_SIZE (FLASH_PAGE_SIZE * 2)
#endif
#define BLKS_PER_PLN (128) /* of a plane */
#define NAND_CHANNEL_BANDWIDTH (800ull) //MB/s
#define PCIE_BANDWIDTH (3360ull)
#define NAND_4KB_READ_LATENCY_LSB (35000 - 6000) //ns
#define NAND_4KB_READ_LATENCY_MSB (35000 + 6000)
#define NAND_PROG_LATENCY (185000)
#define NAND_ERASE_LATENCY (0)
#define FW_4KB_READ_LATENCY (21500)
#define FW_WBUF_LATENCY0 (4000)
#define FW_WBUF_LATENCY1 (460)
#define OP_AREA_PERCENT (0.07)
#define GLOBAL_WB_SIZE (NAND_CHANNELS * LUNS_PER_NAND_CH * ONESHOT_PAGE_SIZE * 2)
#define WRITE_EARLY_COMPLETION 1
#define LBA_BITS (9)
#define LBA_SIZE (1 << LBA_BITS)
#elif (BASE_SSD == ZONED)
#define NS_SSD_TYPE_0 SSD_TYPE_ZNS
#endif
"""

NVMEVIRT_ALONE = NVMEVIRT[: NVMEVIRT.index("#elif")] + "#endif\n"
"""The same with one SSD, which needs no choice."""

SIMPLESSD = """[nvme]
PCIEGeneration = 2
PCIELane = 4
LBASize = 512
[sata]
PCIELane = 1
[pal]
Channel = 2
Package = 1
Die = 2
Plane = 1
Block = 64
Page = 128
PageSize = 16384
NANDType = 0      # SLC
LSBRead = 40000000
LSBWrite = 500000000
CSBRead = 0
CSBWrite = 0
MSBRead = 0
MSBWrite = 0
Erase = 3500000000
DMASpeed = 400
DMAWidth = 8
[ftl]
MappingMode = 0
OverProvisioningRatio = 0.25
GCThreshold = 0.05
EvictPolicy = 3
DChoiceParam = 4
[icl]
CacheSize = 1048576   # 1MiB
EnableWriteCache = 0
"""

CONFIGURATIONS = {
    "ssdconfig.xml": MQSIM,
    "run.sh": FEMU,
    "ssd_config.h": NVMEVIRT_ALONE,
    "small.cfg": SIMPLESSD,
}
